import { isAway } from "@/lib/guards/redis-scripts";
import { renderMetrics } from "@/lib/metrics/render-metrics";
import type { Service } from "@/lib/service";

/** Prometheus text: the counters that Redis kept along the way, and the gauges of Postgres. What is away is left out. */
export async function readMetrics(service: Service): Promise<string> {
  const [guards, rows] = await Promise.all([
    service.guards.read(),
    service.store.readHealth().catch((error: unknown) => {
      service.logger.error({ error }, "Metrics: Postgres cannot be reached");
      return null;
    }),
  ]);
  return renderMetrics(isAway(guards) ? null : guards.counters, {
    jobs: rows === null ? null : { queued: rows.queued, running: rows.running, dead: rows.dead },
    oldestQueuedSeconds: rows === null ? null : (rows.oldestQueuedMs ?? 0) / 1000,
    budgetUsedRatio: isAway(guards) ? null : guards.budgetUsedRatio,
  });
}
