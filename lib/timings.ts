/** A run stops reading here; `maxDuration` of the worker routes is 60 s and QStash's timeout 75 s. */
export const RUN_DEADLINE_MS = 45_000;
/** How long a run's job and lock are its own: the deadline and 15 s for its last write. */
export const RUN_LEASE_MS = RUN_DEADLINE_MS + 15_000;
export const QSTASH_TIMEOUT_S = 75;

/** Time limits of one call, because the clients have none or re-send for seconds. */
export const REDIS_TIMEOUT_MS = 1_000;
export const PUBLISH_TIMEOUT_MS = 3_000;
export const POSTGRES_TIMEOUT_MS = 5_000;
/** When a delivery or an event that could not be served should come again. */
export const RETRY_AFTER_S = 30;
