import type { JobReason, Publishable, SyncKey } from "@/lib/domain";
import { type Away, isAway } from "@/lib/guards/redis-scripts";
import { leftOf } from "@/lib/jobs/publish-jobs";
import type { Service } from "@/lib/service";

/** Bulk work takes no more of the budget than this much ahead, so that a fresh webhook never waits longer behind it. */
export const BULK_HORIZON_MS = 60_000;

export type BulkKey = SyncKey & { calls: number };
export type Bulk = { publish: Publishable[]; waits: number[]; taken: number };

/**
 * Accepts keys for bulk work, each only together with its slot and at most a minute ahead (fairness): first the slots, for
 * job ids of our own making, then the same acceptance as intake's, in one call. Slots of keys that turned out to have a
 * job already go back, and all of them where Postgres gave no answer: a job that it accepted all the same is reconcile's.
 * `taken` keys were dealt with, in order; the rest must come again. While Redis is away: none.
 */
export async function acceptBulk(service: Service, reason: JobReason, keys: BulkKey[]): Promise<Bulk | Away> {
  if (keys.length === 0) return { publish: [], waits: [], taken: 0 };
  const items = keys.map((key) => ({ ...key, jobId: service.newId(), delivery: 1 }));
  const waits = await service.guards.reserveSlots(items, BULK_HORIZON_MS);
  const toldAt = service.clock();
  await service.reach("sweep:reserved");
  if (isAway(waits)) return waits;
  const granted = items.slice(0, waits.length);
  if (granted.length === 0) return { publish: [], waits: [], taken: 0 };
  const giveBack = (unused: typeof granted) =>
    service.guards.giveBackSlots(
      unused.map(({ jobId, delivery }) => ({ jobId, delivery, retried: 0 })),
      {},
    );
  const request = {
    reason,
    spacingMs: 0,
    items: granted.map(({ jobId, workType, accountId }) => ({ jobId, workType, accountId })),
  };
  const accepted = await service.store.acceptJobs(request).catch(async (error: unknown) => {
    await giveBack(granted);
    throw error;
  });
  await service.reach("sweep:accepted");
  for (const failure of accepted.failed) service.logger.error(failure, "An account could not be accepted");
  const byId = new Map(accepted.publish.map((job) => [job.jobId, job]));
  const unused = granted.filter((item) => !byId.has(item.jobId));
  if (unused.length > 0) await giveBack(unused);
  const kept = granted.flatMap((item, i) => {
    const job = byId.get(item.jobId);
    return job === undefined ? [] : [{ job, wait: Math.max(leftOf(service, waits[i] ?? 0, toldAt), job.dueInMs) }];
  });
  return { publish: kept.map(({ job }) => job), waits: kept.map(({ wait }) => wait), taken: granted.length };
}
