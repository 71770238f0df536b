import { isAway } from "@/lib/guards/redis-scripts";
import type { Service } from "@/lib/service";

export type Health = {
  status: "ok" | "degraded" | "down";
  redis: "up" | "down";
  postgres: "up" | "down";
  qstash: "up" | "down";
  cron: { lastRunAt: string | null };
  queued: { count: number; oldestSeconds: number };
  running: number;
  dead: number;
  cooldownUntil: string | null;
};

const CRON_LATE_MS = 5 * 60_000;
const JOB_LATE_MS = 15 * 60_000;
/** So many publishes of reconcile in a row, 30 s and then twice as long apart each time, take 15 minutes. */
const PUBLISHES_UNTIL_LATE = 5;

/**
 * What an operator must know. `down`: Redis or Postgres cannot be reached. `degraded`: the reconcile cron has not run for
 * 5 minutes, a job is 15 minutes past its time (its due time or its slot, whichever is later: a backlog that waits for its
 * calls is no fault), or QStash does not answer. All but the last are a fault; dead jobs and a cooldown are only shown.
 */
export async function readHealth(service: Service): Promise<{ health: Health; isFault: boolean }> {
  const [guards, rows, qstash] = await Promise.all([
    service.guards.read(),
    service.store.readHealth().catch((error: unknown) => {
      service.logger.error({ error }, "Health: Postgres cannot be reached");
      return null;
    }),
    service.publisher.isReachable(),
  ]);
  const redisUp = !isAway(guards);
  const cronLate = rows !== null && (rows.heartbeatAgeMs === null || rows.heartbeatAgeMs > CRON_LATE_MS);
  const late = cronLate || (rows !== null && (await isAnyJobLate(service, rows.overdue)));
  const down = !redisUp || rows === null;
  const health: Health = {
    status: down ? "down" : late || !qstash ? "degraded" : "ok",
    redis: redisUp ? "up" : "down",
    postgres: rows === null ? "down" : "up",
    qstash: qstash ? "up" : "down",
    cron: { lastRunAt: rows?.heartbeatAt ?? null },
    queued: { count: rows?.queued ?? 0, oldestSeconds: Math.round((rows?.oldestQueuedMs ?? 0) / 1000) },
    running: rows?.running ?? 0,
    dead: rows?.dead ?? 0,
    cooldownUntil:
      isAway(guards) || guards.cooldownMs <= 0 ? null : new Date(service.clock() + guards.cooldownMs).toISOString(),
  };
  return { health, isFault: down || late };
}

/**
 * Jobs that are past their due time may still wait for their slot: Redis knows. Each publish of reconcile comes with a new
 * slot, so a job that no publish brings to its worker is known by their number.
 */
async function isAnyJobLate(
  service: Service,
  overdue: { jobId: string; delivery: number; republished: number }[],
): Promise<boolean> {
  if (overdue.length === 0) return false;
  if (overdue.some(({ republished }) => republished >= PUBLISHES_UNTIL_LATE)) return true;
  const slots = await service.guards.findSlots(overdue);
  return isAway(slots) || slots.some((inMs) => inMs === null || inMs < -JOB_LATE_MS);
}
