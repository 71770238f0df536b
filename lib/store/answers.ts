import { z } from "zod";
import { EVENT_OUTCOMES, JOB_STATUSES, WORK_TYPES } from "@/lib/domain";

/** The shapes that the SQL functions answer with (supabase/migrations: each function's comment). */
const key = { workType: z.enum(WORK_TYPES), accountId: z.string() };

export const publishable = z.object({
  ...key,
  jobId: z.string(),
  delivery: z.number().int(),
  calls: z.number().int(),
  dueInMs: z.number(),
});
const publish = publishable.nullable();
const publishList = z.array(publishable);

export const acceptEventAnswer = z.object({
  outcome: z.enum(EVENT_OUTCOMES),
  jobIds: z.array(z.string()),
  publish: publishList,
  queued: z.object({ jobId: z.string(), dueInMs: z.number() }).nullable(),
  differs: z.boolean(),
});
export type AcceptEventAnswer = z.infer<typeof acceptEventAnswer>;

export const acceptJobsAnswer = z.object({
  publish: publishList,
  notNew: z.array(z.string()),
  failed: z.array(z.object({ jobId: z.string(), accountId: z.string(), error: z.string() })),
});

export const cursor = z.object({
  startDate: z.string().nullable(),
  /** Fixed for the whole pass: the UTC day it began, which becomes the watermark. */
  endDate: z.string(),
  /** The oldest date read: the next page reads up to it, so that rows moving above it cannot hide any. */
  oldestDate: z.string(),
  /** Rows already read of that date, where one date fills more than a page. */
  offset: z.number().int(),
  /** Read of this pass so far. */
  pages: z.number().int(),
});
export type Cursor = z.infer<typeof cursor>;

const begun = z.object({
  outcome: z.literal("begun"),
  fence: z.number(),
  attempts: z.number(),
  tookOver: z.boolean(),
  userId: z.string(),
  secretCiphertext: z.string().nullable(),
  readsAccount: z.boolean(),
  calls: z.number().int(),
  storedBalances: z.boolean(),
  storedPositions: z.boolean(),
  /** A database without 20260518 does not say: they are doubted, which costs a call and no data. */
  storedOrders: z.boolean().default(true),
  failedParts: z.array(z.string()),
  watermark: z.string().nullable(),
  cursor: cursor.nullable(),
  today: z.string(),
});
export type Begun = z.infer<typeof begun>;

export const beginAnswer = z.discriminatedUnion("outcome", [
  begun,
  z.object({ outcome: z.enum(["overtaken", "already_active", "gone", "unknown"]) }),
  z.object({ outcome: z.literal("dead"), publish }),
]);

const fenced = z.object({ outcome: z.enum(["fenced", "gone"]) });
export const commitHoldingsAnswer = z.discriminatedUnion("outcome", [
  z.object({ outcome: z.literal("done"), complete: z.boolean(), publish }),
  fenced,
]);
export const commitTransactionsAnswer = z.discriminatedUnion("outcome", [
  z.object({ outcome: z.literal("done"), publish }),
  z.object({ outcome: z.literal("page") }),
  fenced,
]);
export type CommitTransactionsAnswer = z.infer<typeof commitTransactionsAnswer>;
export const deferAnswer = z.discriminatedUnion("outcome", [
  z.object({ outcome: z.literal("deferred"), publish: publishable }),
  z.object({ outcome: z.enum(["overtaken", "fenced"]) }),
]);
export const giveBackAnswer = z.discriminatedUnion("outcome", [
  z.object({ outcome: z.literal("given_back"), publish }),
  z.object({ outcome: z.literal("fenced") }),
]);
export const failAnswer = z.discriminatedUnion("outcome", [
  z.object({ outcome: z.literal("failed"), publish: publishable }),
  z.object({ outcome: z.literal("dead"), publish }),
  z.object({ outcome: z.literal("fenced") }),
]);
export const closeAnswer = z.discriminatedUnion("outcome", [
  z.object({ outcome: z.literal("deferred"), publish: publishable }),
  fenced,
]);
export const republishFailedAnswer = z.discriminatedUnion("outcome", [
  z.object({ outcome: z.literal("republished"), publish: publishable }),
  z.object({ outcome: z.literal("dead"), publish }),
  z.object({ outcome: z.literal("overtaken") }),
]);

export const startSweepAnswer = z.object({ started: z.boolean() });
export const staleKey = z.object({ ...key, calls: z.number().int(), attempted: z.string() });
export const listStaleAnswer = z.discriminatedUnion("current", [
  z.object({ current: z.literal(true), keys: z.array(staleKey) }),
  z.object({ current: z.literal(false) }),
]);

export const takeBackAnswer = z.object({
  taken: z.number(),
  dead: z.array(z.object({ ...key, jobId: z.string() })),
  publish: publishList,
});
export const overdueJob = z.object({
  ...key,
  jobId: z.string(),
  delivery: z.number().int(),
  calls: z.number().int(),
  createdAt: z.string(),
  graceMs: z.number(),
  unpublished: z.boolean(),
});
export type OverdueJob = z.infer<typeof overdueJob>;
export const listOverdueAnswer = z.object({ jobs: z.array(overdueJob) });
export const publishAnswer = z.object({ publish: publishList });
export const releaseWaitingAnswer = z.object({ released: z.number(), publish: publishList });
export const endTickAnswer = z.object({ events: z.number(), jobs: z.number() });

const storedSecrets = z.array(z.object({ userId: z.string(), secretCiphertext: z.string() }));
export type StoredSecret = z.infer<typeof storedSecrets>[number];
export const usersToListAnswer = z.object({ users: storedSecrets });
export const putListingAnswer = z.object({ behind: z.array(z.object({ ...key, calls: z.number().int() })) });
export const putUserAnswer = z.object({ created: z.boolean() });
export const removeUserAnswer = z.object({ removed: z.boolean() });
export const findUserAnswer = z.object({
  user: z.object({ removed: z.boolean(), hasSecret: z.boolean() }).nullable(),
});
export const listSecretsAnswer = z.object({ users: storedSecrets });
export const replaceSecretsAnswer = z.object({ replaced: z.number(), changed: storedSecrets });

export const listedJob = z.object({
  ...key,
  jobId: z.string(),
  status: z.enum(JOB_STATUSES),
  reason: z.string(),
  attempts: z.number(),
  delivery: z.number(),
  calls: z.number().int(),
  dueAt: z.string(),
  leaseUntil: z.string().nullable(),
  lastError: z.string().nullable(),
  createdAt: z.string(),
  startedAt: z.string().nullable(),
  finishedAt: z.string().nullable(),
});
export type ListedJob = z.infer<typeof listedJob>;
export const listJobsAnswer = z.object({ jobs: z.array(listedJob) });
/** `gone`: removed, its user removed, or its connection disabled. */
export const findAccountAnswer = z.object({
  account: z.object({ accountId: z.string(), userId: z.string(), gone: z.boolean() }).nullable(),
});
export const replayAnswer = z.object({
  publish: publishList,
  superseded: z.array(z.string()),
  notDead: z.array(z.string()),
});
export const healthAnswer = z.object({
  queued: z.number(),
  running: z.number(),
  dead: z.number(),
  oldestQueuedMs: z.number().nullable(),
  heartbeatAt: z.string().nullable(),
  heartbeatAgeMs: z.number().nullable(),
  overdue: z.array(z.object({ jobId: z.string(), delivery: z.number().int(), republished: z.number().int() })),
});
export const empty = z.object({});
