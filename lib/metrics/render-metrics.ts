import { Counter, Gauge, Registry } from "prom-client";
import { EVENT_OUTCOMES, type JobStatus } from "@/lib/domain";
import { COUNTERS, DERIVED_COUNTERS, field, metricName } from "@/lib/metrics/metric-names";

/** What is measured when asked. `null`: it could not be read and is left out; a zero would be a lie. */
export type Gauges = {
  /** By status, as far as they are counted: finished jobs are not, they would have to be read from end to end. */
  jobs: Readonly<Partial<Record<JobStatus, number>>> | null;
  oldestQueuedSeconds: number | null;
  /** Part of the next window of the background share that is handed out already, 0 to 1. */
  budgetUsedRatio: number | null;
};

/** Shown from the start, so that a rate does not miss the first event. */
const ZEROS = Object.fromEntries(EVENT_OUTCOMES.map((outcome) => [field("webhook_events", outcome), "0"]));

/**
 * Prometheus text of the counters (fields as `field` names them, values as Redis has them) and the gauges. Counters are
 * `null` where they could not be read: a counter that fell to zero would be taken for a restart.
 */
export async function renderMetrics(
  counters: Readonly<Record<string, string>> | null,
  gauges: Gauges,
): Promise<string> {
  const registry = new Registry();
  if (counters !== null) addCounters(registry, { ...ZEROS, ...counters });
  addGauges(registry, gauges);
  return registry.metrics();
}

function addCounters(registry: Registry, counters: Readonly<Record<string, string>>): void {
  for (const [name, spec] of Object.entries(COUNTERS)) {
    const labelNames = "label" in spec ? [spec.label] : [];
    const counter = new Counter({ name: metricName(name), help: spec.help, labelNames, registers: [registry] });
    if (!("label" in spec)) {
      counter.inc(count(counters[name]));
      continue;
    }
    for (const [key, value] of Object.entries(counters)) {
      if (key.startsWith(`${name}:`)) counter.inc({ [spec.label]: key.slice(name.length + 1) }, count(value));
    }
  }
  for (const [name, { from, help }] of Object.entries(DERIVED_COUNTERS)) {
    new Counter({ name: metricName(name), help, registers: [registry] }).inc(count(counters[from]));
  }
}

/** A counter never goes down and is never NaN, whatever stands in the hash. */
function count(value = "0"): number {
  const number = Number(value);
  return Number.isFinite(number) && number > 0 ? number : 0;
}

function addGauges(registry: Registry, { jobs, oldestQueuedSeconds, budgetUsedRatio }: Gauges): void {
  const registers = [registry];
  if (jobs !== null) {
    const gauge = new Gauge({ name: "snaptrade_jobs", help: "Jobs by status.", labelNames: ["status"], registers });
    for (const [status, jobsOfStatus] of Object.entries(jobs)) gauge.set({ status }, jobsOfStatus);
  }
  if (oldestQueuedSeconds !== null) {
    const help = "Age of the oldest queued job in seconds.";
    new Gauge({ name: "snaptrade_oldest_queued_seconds", help, registers }).set(oldestQueuedSeconds);
  }
  if (budgetUsedRatio !== null) {
    const help = "Part of the next window of the background share that is handed out already, 0 to 1.";
    new Gauge({ name: "snaptrade_budget_used_ratio", help, registers }).set(budgetUsedRatio);
  }
}
