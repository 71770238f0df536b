/**
 * The counters, kept as fields of one Redis hash and counted in round trips that are made anyway. A field is the
 * counter's name, with its label after a colon: `webhook_events:accepted`, `jobs_coalesced`.
 */
export const COUNTERS = {
  webhook_events: { label: "outcome", help: "Authentic webhook events by answer." },
  jobs_coalesced: { help: "Jobs that an event did not make, because a queued one already covered it." },
  active_lock_skips: { help: "Deliveries that did nothing, because a run of their key was active." },
  qstash_publish_failures: { help: "Publishes that QStash did not take." },
  qstash_retries: { help: "Deliveries that QStash sent again." },
  provider_responses: { label: "status", help: "Answers of SnapTrade by HTTP status; 0 where none came." },
  jobs_deferred: { label: "reason", help: "Jobs put back into QStash with a delay." },
  runs: { label: "outcome", help: "Deliveries to the workers by outcome." },
} as const satisfies Record<string, { label?: string; help: string }>;

type Counter = keyof typeof COUNTERS;
type Labelled = { [Name in Counter]: (typeof COUNTERS)[Name] extends { label: string } ? Name : never }[Counter];
type Plain = Exclude<Counter, Labelled>;

/** The field of a counter in the hash. */
export function field(...[counter, label]: [Labelled, string | number] | [Plain]): string {
  return label === undefined ? counter : `${counter}:${label}`;
}

/** Counters that are a part of another one: shown under their own name, counted once. */
export const DERIVED_COUNTERS = {
  duplicate_webhooks: { from: field("webhook_events", "duplicate"), help: "Webhook events that had been seen before." },
  provider_429: { from: field("provider_responses", 429), help: "Answers 429 of SnapTrade." },
} as const;

/** `webhook_events` is shown as `snaptrade_webhook_events_total`. */
export function metricName(counter: string): string {
  return `snaptrade_${counter}_total`;
}
