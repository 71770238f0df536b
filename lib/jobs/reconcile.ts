import { isAway } from "@/lib/guards/redis-scripts";
import { reportDead } from "@/lib/jobs/end-run";
import { type Listing, listUser } from "@/lib/jobs/list-users";
import { publishWithSlots } from "@/lib/jobs/publish-jobs";
import { publishOverdue } from "@/lib/jobs/publish-overdue";
import { releaseWaiting } from "@/lib/jobs/release-waiting";
import type { Service } from "@/lib/service";
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
    if (listing.kind === "failed" && listing.failure.kind === "throttled") break;
    await service.store.markListed({ userId: user.userId });
    await service.reach("reconcile:marked");
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
