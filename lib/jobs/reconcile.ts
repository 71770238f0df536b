import { isAway } from "@/lib/guards/redis-scripts";
import { BULK_HORIZON_MS } from "@/lib/jobs/accept-bulk";
import { reportDead } from "@/lib/jobs/end-run";
import { type Listing, listUser } from "@/lib/jobs/list-users";
import { publishJobs, publishWithSlots } from "@/lib/jobs/publish-jobs";
import { releaseWaiting } from "@/lib/jobs/release-waiting";
import type { Service } from "@/lib/service";
import type { OverdueJob } from "@/lib/store/answers";
import { StoreError } from "@/lib/store/call-function";

export type Tick = {
  taken: number;
  dead: number;
  republished: number;
  released: number;
  listed: number;
  pruned: number;
  redisAway: boolean;
};

/** No new work is begun after this; the route's `maxDuration` is 60 s. */
const TICK_MS = 40_000;
/** What still asks SnapTrade then is cut off. */
const CALLS_MS = 50_000;
const LEASES = 200;
const OVERDUE_PAGE = 500;
const WAITING = 100;
const USERS = 20;
const PRUNE = 5_000;

/**
 * One tick of the reconcile cron (I8): takes back runs past their lease, publishes what no message carries, accepts what
 * waited for its account, asks SnapTrade's lists about lost webhooks, prunes, and writes the heartbeat. While Redis is away
 * it publishes nothing. Overlapping, repeated and missed ticks are harmless.
 */
export async function reconcile(service: Service): Promise<Tick> {
  const { store, logger, env } = service;
  const startedAt = service.clock();
  const signal = service.deadline(CALLS_MS);
  const timeLeft = () => service.clock() - startedAt < TICK_MS;
  const tick: Tick = { taken: 0, dead: 0, republished: 0, released: 0, listed: 0, pruned: 0, redisAway: false };

  const back = await store.takeBackLeases({ limit: LEASES, maxAttempts: env.limits.jobMaxAttempts });
  await service.reach("reconcile:taken");
  tick.taken = back.taken;
  tick.dead = back.dead.length;
  for (const job of back.dead) {
    reportDead(service, job, "the last attempt did not end within its lease");
  }

  tick.redisAway = isAway(await service.guards.findSlots([]));
  if (tick.redisAway) {
    logger.warn({}, "Redis is away: reconcile publishes nothing this time");
  } else {
    await publishWithSlots(service, back.publish);
    tick.republished = await publishOverdue(service, timeLeft);
    tick.released = await releaseWaiting(service, { limit: WAITING });
    tick.listed = await listUsers(service, timeLeft, signal);
  }
  const pruned = await store.endTick({ retentionMs: env.limits.retentionMs, limit: PRUNE });
  tick.pruned = pruned.events + pruned.jobs;
  return tick;
}

/**
 * Queued jobs past their due time and their slot by a grace: what QStash merely holds back is never published again. Oldest
 * first, page by page, until a minute of slots is taken.
 */
async function publishOverdue(service: Service, timeLeft: () => boolean): Promise<number> {
  let published = 0;
  let cursor: { createdAt: string; jobId: string } | null = null;
  while (timeLeft()) {
    const { jobs } = await service.store.listOverdue({ cursor, limit: OVERDUE_PAGE });
    await service.reach("reconcile:listed");
    const last = jobs.at(-1);
    if (last === undefined) break;
    const slots = await service.guards.findSlots(jobs);
    if (isAway(slots)) break;
    const lost = jobs.filter((job, i) => isLost(job, slots[i] ?? null));
    const next = lost.map((job) => ({ ...job, delivery: job.delivery + 1 }));
    const waits = await service.guards.reserveSlots(next, BULK_HORIZON_MS);
    await service.reach("reconcile:reserved");
    if (isAway(waits)) break;
    const items = lost.slice(0, waits.length);
    if (items.length > 0) {
      const { publish } = await service.store.republish({ items });
      await service.reach("reconcile:handed-out");
      const waitOf = new Map(next.map((job, i) => [job.jobId, waits[i] ?? 0]));
      published += await publishJobs(
        service,
        publish,
        publish.map((job) => waitOf.get(job.jobId) ?? job.dueInMs),
      );
      await service.reach("reconcile:published");
    }
    if (items.length < lost.length || jobs.length < OVERDUE_PAGE) break;
    cursor = { createdAt: last.createdAt, jobId: last.jobId };
  }
  return published;
}

/** `slotInMs`: how far its slot is ahead, null where Redis knows none. A slot is kept for ten minutes after its time. */
function isLost(job: OverdueJob, slotInMs: number | null): boolean {
  return job.unpublished || slotInMs === null || slotInMs + job.graceMs <= 0;
}

async function listUsers(service: Service, timeLeft: () => boolean, signal: AbortSignal): Promise<number> {
  const { users } = await service.store.usersToList({ limit: USERS });
  let listed = 0;
  for (const user of users) {
    if (!timeLeft()) break;
    const listing = await listOrReport(service, user, signal);
    if (listing.kind === "listed") {
      listed += 1;
      continue;
    }
    if (listing.kind === "no_budget" || signal.aborted) break;
    await service.store.markListed({ userId: user.userId });
    await service.reach("reconcile:marked");
    if (listing.kind === "failed" && listing.failure.kind === "throttled") break;
  }
  return listed;
}

/** What is wrong with one user's secret, lists or rows must not keep the other users from theirs, tick after tick. */
async function listOrReport(
  service: Service,
  user: { userId: string; secretCiphertext: string },
  signal: AbortSignal,
): Promise<Listing | { kind: "broken" }> {
  const message = "A user's accounts could not be listed";
  try {
    const listing = await listUser(service, user, signal);
    if (listing.kind === "failed") {
      const { what, failure } = listing;
      service.logger.warn({ userId: user.userId, what, failure: failure.kind }, message);
    }
    return listing;
  } catch (error) {
    if (error instanceof StoreError && error.away) throw error;
    service.logger.error({ userId: user.userId, error }, message);
    return { kind: "broken" };
  }
}
