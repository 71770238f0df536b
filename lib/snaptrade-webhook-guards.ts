/**
 * The only module that knows Redis keys, scripts and TTLs. Redis is the traffic cop: losing all of it costs speed, never
 * data. Every function is one round trip. Where Redis gave no positive answer it answers Away, or what its comment names.
 */
import type { Clock, JobMessage, Publishable, SyncKey } from "@/lib/domain";
import {
  LUA_ADMIT,
  LUA_CLAIM,
  LUA_CLAIM_ALERT,
  LUA_FIND_SLOTS,
  LUA_GIVE_BACK,
  LUA_OBSERVE,
  LUA_READ,
  LUA_RELEASE,
  LUA_RESERVE,
  LUA_RESERVE_BULK,
  LUA_RESERVE_NOW,
  LUA_SETTLE,
  LUA_UNCLAIM,
  LUA_UNQUEUE,
} from "@/lib/guards/lua-scripts";
import { AWAY, type Away, isAway, type ScriptRunner } from "@/lib/guards/redis-scripts";
import { field } from "@/lib/metrics/metric-names";

export type GuardSettings = {
  /** `<VERCEL_ENV>:` off production; never on the budget and the cooldowns, which belong to the client id. */
  keyPrefix: string;
  /** 24 h: longer than SnapTrade's retries (from 30 min on, three times). */
  webhookTtlMs: number;
  /** 30 min. Expiry is harmless: an event then asks Postgres. */
  queuedTtlMs: number;
  /** 30 min, far above any run (45 s): the lease inside the value decides, not the TTL. */
  lockTtlMs: number;
  /** How long a run may hold the lock: deadline + 15 s. */
  leaseMs: number;
  rateLimit: number;
  backgroundShare: number;
  rateWindowMs: number;
};

export type GuardContext = {
  settings: GuardSettings;
  scripts: ScriptRunner;
  /** Absent: Redis's own clock, so that no instance's clock counts. Tests give their own. */
  clock?: Clock;
};

/** (field, amount) pairs for the metrics hash; they ride in round trips that are made anyway. */
export type Counts = Record<string, number>;
/** A delivery's place in the budget; `retried` is QStash's own retry number. */
export type SlotId = { jobId: string; delivery: number; retried: number };

/** What enters a key here has passed the one id grammar: no id can form another key, or a pattern. */
export const keys = {
  webhook: (c: GuardContext, webhookId: string) => `${c.settings.keyPrefix}snaptrade:webhook:${webhookId}`,
  queued: (c: GuardContext, k: SyncKey) =>
    `${c.settings.keyPrefix}snaptrade:account:queued:${k.workType}:${k.accountId}`,
  lock: (c: GuardContext, k: SyncKey) => `${c.settings.keyPrefix}snaptrade:account:lock:${k.workType}:${k.accountId}`,
  metrics: (c: GuardContext) => `${c.settings.keyPrefix}snaptrade:metrics`,
  alert: (c: GuardContext, name: string) => `${c.settings.keyPrefix}snaptrade:alert:${name}`,
  budget: "snaptrade:provider:budget",
  cooldown: "snaptrade:provider:cooldown",
  accountCooldown: (accountId: string) => `snaptrade:account:cooldown:${accountId}`,
  slot: (s: SlotId) => `snaptrade:provider:slot:${s.jobId}:${s.delivery}:${s.retried}`,
};

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000));
const pending = (nonce: string) => `pending:${nonce}`;
const pairs = (counts: Counts) => Object.entries(counts).flat();
const firstSlot = (p: JobMessage): SlotId => ({ jobId: p.jobId, delivery: p.delivery, retried: 0 });
const budgetArgs = ({ settings: s, clock }: GuardContext) => [
  clock === undefined ? "" : Math.floor(clock()),
  s.rateLimit,
  s.backgroundShare,
  s.rateWindowMs,
];

function strings(reply: unknown): string[] {
  if (!Array.isArray(reply)) throw new Error(`A guard script answered ${typeof reply}, expected a list`);
  return reply.map(String);
}

export type WebhookClaim = { kind: "claimed" } | { kind: "duplicate" } | { kind: "coalesced"; jobId: string } | Away;

/** Claims an event and, for a single key, its queued slot. `shortCut`: a queued job may cover the event at once. */
export async function claimSnapTradeWebhook(
  c: GuardContext,
  claim: { webhookId: string; nonce: string; key: SyncKey | null; shortCut: boolean },
): Promise<WebhookClaim> {
  const reply = await c.scripts.run(
    LUA_CLAIM,
    [keys.webhook(c, claim.webhookId), keys.metrics(c), ...(claim.key === null ? [] : [keys.queued(c, claim.key)])],
    [
      pending(claim.nonce),
      seconds(c.settings.webhookTtlMs),
      seconds(c.settings.queuedTtlMs),
      claim.shortCut ? 1 : 0,
      field("webhook_events", "duplicate"),
      field("webhook_events", "coalesced"),
      field("jobs_coalesced"),
    ],
  );
  if (isAway(reply)) return AWAY;
  const [kind, jobId] = strings(reply);
  if (kind === "coalesced" && jobId) return { kind, jobId };
  return { kind: kind === "duplicate" ? "duplicate" : "claimed" };
}

/** The event could not be made durable: our claims go, each only if it is still ours. */
export async function releaseSnapTradeWebhook(
  c: GuardContext,
  claim: { webhookId: string; nonce: string; key: SyncKey | null },
): Promise<void> {
  const claimed = [keys.webhook(c, claim.webhookId), ...(claim.key === null ? [] : [keys.queued(c, claim.key)])];
  await c.scripts.run(LUA_UNCLAIM, claimed, [pending(claim.nonce)]);
}

/**
 * Before the publish: the webhook key says accepted, the queued key names the job if it still holds our nonce (without a job
 * it goes, whatever it holds), and the
 * jobs published now get their slots. Answers the wait of each publish in ms.
 */
export async function settleSnapTradeWebhook(
  c: GuardContext,
  settle: {
    webhookId: string;
    nonce: string;
    key: SyncKey | null;
    queuedJobId: string | null;
    publish: Publishable[];
    counts: Counts;
  },
): Promise<number[] | Away> {
  const { publish } = settle;
  const reply = await c.scripts.run(
    LUA_SETTLE,
    [
      keys.budget,
      keys.cooldown,
      keys.metrics(c),
      keys.webhook(c, settle.webhookId),
      settle.key === null ? "" : keys.queued(c, settle.key),
      ...publish.map((p) => keys.slot(firstSlot(p))),
    ],
    [
      ...budgetArgs(c),
      pending(settle.nonce),
      seconds(c.settings.webhookTtlMs),
      seconds(c.settings.queuedTtlMs),
      settle.queuedJobId ?? "",
      publish.length,
      ...publish.flatMap((p) => [p.calls, p.dueInMs]),
      ...pairs(settle.counts),
    ],
  );
  return isAway(reply) ? AWAY : strings(reply).map(Number);
}

export type Admission =
  /** `calls` may be made; `limit` is the limit in force; `reserved`: the slot was charged just now; `slotAt`: of its calls. */
  | { kind: "go"; calls: number; limit: number; reserved: boolean; slotAt: number }
  | { kind: "held" }
  | {
      kind: "defer";
      waitMs: number;
      reason: "cooldown" | "hold" | "budget" | "early";
      reserved: boolean;
      notBeforeMs: number;
    }
  | Away;

/**
 * Admits a delivery: cooldown, hold and slot first (I5, I6), and only when all three let it go on the account's lock.
 * `replace`: Postgres has decided that the holder of a held lock is past its lease.
 */
export async function claimSnapTradeAccountLock(
  c: GuardContext,
  delivery: { job: JobMessage; retried: number; token: string; calls: number; replace: boolean; counts: Counts },
): Promise<Admission> {
  const { job } = delivery;
  const reply = await c.scripts.run(
    LUA_ADMIT,
    [
      keys.budget,
      keys.cooldown,
      keys.metrics(c),
      keys.accountCooldown(job.accountId),
      keys.lock(c, job),
      keys.slot({ jobId: job.jobId, delivery: job.delivery, retried: delivery.retried }),
      keys.slot({ jobId: job.jobId, delivery: job.delivery + 1, retried: 0 }),
    ],
    [
      ...budgetArgs(c),
      delivery.token,
      c.settings.leaseMs,
      seconds(c.settings.lockTtlMs),
      delivery.calls,
      delivery.replace ? 1 : 0,
      ...pairs(delivery.counts),
    ],
  );
  if (isAway(reply)) return AWAY;
  const [kind, a, b, d, e] = strings(reply);
  if (kind === "go") return { kind, calls: Number(a), limit: Number(b), reserved: d === "1", slotAt: Number(e) };
  if (kind === "held") return { kind };
  const reason = b === "cooldown" || b === "hold" || b === "early" ? b : "budget";
  return { kind: "defer", waitMs: Number(a), reason, reserved: d === "1", notBeforeMs: Number(e) };
}

/** From here on a new event makes the trailing job: the queued key goes, whatever it holds. True: Redis said so. */
export async function clearSnapTradeAccountQueued(c: GuardContext, key: SyncKey): Promise<boolean> {
  return !isAway(await c.scripts.run(LUA_UNQUEUE, [keys.queued(c, key)], []));
}

/**
 * More calls at once: how many of `calls` are free now, of the slot of which time; 0 also where Redis is away. `spares`:
 * those that other runs did not make too. They are for a run; they do not say that there is room for more work.
 */
export async function reserveSnapTradeCallsNow(
  c: GuardContext,
  calls: number,
  { spares }: { spares: boolean },
): Promise<{ calls: number; slotAt: number }> {
  const args = [...budgetArgs(c), calls, spares ? 1 : 0];
  const reply = await c.scripts.run(LUA_RESERVE_NOW, [keys.budget, keys.cooldown], args);
  if (isAway(reply)) return { calls: 0, slotAt: 0 };
  const [free, slotAt] = strings(reply);
  return { calls: Number(free), slotAt: Number(slotAt) };
}

/**
 * The end of a delivery: the lock, and of a run that began the queued key too, each only if ours (where the run closed its
 * key's jobs, whatever stands behind the queued key: it covers no event any more); a reservation that was
 * not used goes back, and so do the calls of a run that it did not make (I5); the jobs published next get their slots.
 * Answers the wait of each publish in ms.
 */
export async function releaseSnapTradeAccountLock(
  c: GuardContext,
  end: {
    job: JobMessage;
    token: string;
    began: boolean;
    closed: boolean;
    unused: SlotId | null;
    unmade: { calls: number; slotAt: number };
    publish: Publishable[];
    counts: Counts;
  },
): Promise<number[] | Away> {
  const { job, publish } = end;
  const reply = await c.scripts.run(
    LUA_RELEASE,
    [
      keys.budget,
      keys.cooldown,
      keys.metrics(c),
      keys.lock(c, job),
      keys.queued(c, job),
      end.unused === null ? "" : keys.slot(end.unused),
      ...publish.map((p) => keys.slot(firstSlot(p))),
    ],
    [
      ...budgetArgs(c),
      end.token,
      job.jobId,
      end.closed ? 2 : end.began ? 1 : 0,
      end.unmade.calls,
      end.unmade.slotAt,
      publish.length,
      ...publish.flatMap((p) => [p.calls, p.dueInMs]),
      ...pairs(end.counts),
    ],
  );
  return isAway(reply) ? AWAY : strings(reply).map(Number);
}

/** Slots for jobs that are published now, wherever they fall. Answers the wait of each in ms. */
export async function settleSnapTradeSlots(c: GuardContext, publish: Publishable[]): Promise<number[] | Away> {
  const reply = await c.scripts.run(
    LUA_RESERVE,
    [keys.budget, keys.cooldown, ...publish.map((p) => keys.slot(firstSlot(p)))],
    [...budgetArgs(c), ...publish.flatMap((p) => [p.calls, p.dueInMs])],
  );
  return isAway(reply) ? AWAY : strings(reply).map(Number);
}

/** Slots for bulk work, in order, as far as they begin within `horizonMs`. The answer is as long as what was granted. */
export async function reserveSnapTradeSlots(
  c: GuardContext,
  jobs: { jobId: string; delivery: number; calls: number }[],
  horizonMs: number,
): Promise<number[] | Away> {
  const reply = await c.scripts.run(
    LUA_RESERVE_BULK,
    [keys.budget, keys.cooldown, ...jobs.map((j) => keys.slot({ ...j, retried: 0 }))],
    [...budgetArgs(c), horizonMs, ...jobs.map((j) => j.calls)],
  );
  return isAway(reply) ? AWAY : strings(reply).map(Number);
}

/** Gives unused bulk slots back, as far as nothing was reserved after them, and counts. */
export async function giveBackSnapTradeSlots(c: GuardContext, slots: SlotId[], counts: Counts): Promise<void> {
  await c.scripts.run(
    LUA_GIVE_BACK,
    [keys.budget, keys.cooldown, keys.metrics(c), ...slots.map(keys.slot)],
    [...budgetArgs(c), ...pairs(counts)],
  );
}

/** Counts what no other round trip can carry. */
export async function countSnapTradeMetrics(c: GuardContext, counts: Counts): Promise<void> {
  await giveBackSnapTradeSlots(c, [], counts);
}

/** How far each delivery's slot is ahead in ms, negative once it is past; null where Redis knows none. */
export async function findSnapTradeSlots(
  c: GuardContext,
  jobs: { jobId: string; delivery: number }[],
): Promise<(number | null)[] | Away> {
  const slots = jobs.map((j) => keys.slot({ ...j, retried: 0 }));
  const reply = await c.scripts.run(LUA_FIND_SLOTS, [keys.budget, keys.cooldown, ...slots], budgetArgs(c));
  return isAway(reply) ? AWAY : strings(reply).map((wait) => (wait === "none" ? null : Number(wait)));
}

/**
 * What an answer of the provider said about its limits. Lengths are ms from now, 0 for none; each is a maximum that a
 * later, shorter one never shortens. A limit that differs from the last one voids the slots handed out. Answers whether it
 * rose; one answer alone says so, however many see it.
 */
export async function observeSnapTradeLimits(
  c: GuardContext,
  seen: {
    accountId: string;
    limit?: number;
    holdMs: number;
    cooldownMs: number;
    accountCooldownMs: number;
    counts: Counts;
  },
): Promise<boolean> {
  const reply = await c.scripts.run(
    LUA_OBSERVE,
    [keys.budget, keys.cooldown, keys.metrics(c), keys.accountCooldown(seen.accountId)],
    [...budgetArgs(c), seen.limit ?? "", seen.holdMs, seen.cooldownMs, seen.accountCooldownMs, ...pairs(seen.counts)],
  );
  return !isAway(reply) && Number(reply) === 1;
}

/** One alert for a wave of equal failures: they come again an hour apart. */
const ALERT_WAVE_MS = 3_600_000;

/** Whether this is the first failure of its wave, over all instances; yes where Redis is away: better twice than never. */
export async function claimSnapTradeAlert(c: GuardContext, name: string): Promise<boolean> {
  const reply = await c.scripts.run(LUA_CLAIM_ALERT, [keys.alert(c, name)], [seconds(ALERT_WAVE_MS)]);
  return isAway(reply) || Number(reply) === 1;
}

export type GuardReading = { cooldownMs: number; budgetUsedRatio: number; counters: Record<string, string> };

/** For health and metrics. */
export async function readSnapTradeGuards(c: GuardContext): Promise<GuardReading | Away> {
  const reply = await c.scripts.run(LUA_READ, [keys.budget, keys.cooldown, keys.metrics(c)], budgetArgs(c));
  if (isAway(reply)) return AWAY;
  const [cooldownMs, used, flat] = Array.isArray(reply) ? reply : [];
  const list = strings(flat);
  const counters: Record<string, string> = {};
  for (let i = 0; i + 1 < list.length; i += 2) counters[list[i] ?? ""] = list[i + 1] ?? "0";
  return { cooldownMs: Number(cooldownMs), budgetUsedRatio: Number(used), counters };
}

/** The guards as one port, bound to their context. */
export function createGuards(c: GuardContext) {
  type Rest<F> = F extends (c: GuardContext, ...rest: infer R) => infer A ? (...rest: R) => A : never;
  const bind = <F extends (c: GuardContext, ...rest: never[]) => unknown>(f: F) =>
    ((...rest: never[]) => f(c, ...rest)) as Rest<F>;
  return {
    claimWebhook: bind(claimSnapTradeWebhook),
    releaseWebhook: bind(releaseSnapTradeWebhook),
    settleWebhook: bind(settleSnapTradeWebhook),
    claimAccountLock: bind(claimSnapTradeAccountLock),
    clearAccountQueued: bind(clearSnapTradeAccountQueued),
    reserveCallsNow: bind(reserveSnapTradeCallsNow),
    releaseAccountLock: bind(releaseSnapTradeAccountLock),
    settleSlots: bind(settleSnapTradeSlots),
    reserveSlots: bind(reserveSnapTradeSlots),
    giveBackSlots: bind(giveBackSnapTradeSlots),
    count: bind(countSnapTradeMetrics),
    findSlots: bind(findSnapTradeSlots),
    observeLimits: bind(observeSnapTradeLimits),
    claimAlert: bind(claimSnapTradeAlert),
    read: bind(readSnapTradeGuards),
  };
}

export type Guards = ReturnType<typeof createGuards>;
