/**
 * The words of the service (ARCHITECTURE.md has the table): one word a thing, the same in code, SQL, metrics and logs.
 */

export const WORK_TYPES = ["holdings", "transactions"] as const;
export type WorkType = (typeof WORK_TYPES)[number];

/** One (work type, account) pair: the unit of coalescing and of mutual exclusion. */
export type SyncKey = { workType: WorkType; accountId: string };

/** What QStash carries to a worker. No secret, nothing but names. */
export type JobMessage = SyncKey & { jobId: string; delivery: number };

export const JOB_REASONS = ["event", "sweep", "reconcile", "replay", "manual"] as const;
export type JobReason = (typeof JOB_REASONS)[number];

export const JOB_STATUSES = ["queued", "running", "done", "superseded", "dead", "gone"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

/** The closed set of answers to an authentic webhook. */
export const EVENT_OUTCOMES = [
  "accepted",
  "duplicate",
  "coalesced",
  "ignored",
  "unroutable",
  "expired",
  "waiting",
] as const;
export type EventOutcome = (typeof EVENT_OUTCOMES)[number];

/**
 * A job that Postgres has decided to publish: the delivery number is already handed out.
 * `calls` is what its slot must hold; `dueInMs` is counted by the database's clock from the moment it answered.
 */
export type Publishable = JobMessage & { calls: number; dueInMs: number };

/** Milliseconds since the epoch. Injected everywhere, so that tests can step it. */
export type Clock = () => number;
