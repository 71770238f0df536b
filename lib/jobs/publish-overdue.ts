import { isAway } from "@/lib/guards/redis-scripts";
import { BULK_HORIZON_MS } from "@/lib/jobs/accept-bulk";
import { leftOf, publishJobs } from "@/lib/jobs/publish-jobs";
import type { Service } from "@/lib/service";
import type { OverdueJob } from "@/lib/store/answers";

const OVERDUE_PAGE = 500;

/**
 * Publishes queued jobs past their due time and their slot by a grace (I8): what QStash merely holds back is never published
 * again. Oldest first, page by page, until a minute of slots is taken. Answers how many were published. Whoever calls it
 * beside others does no harm: each decision is made again under the key's lock.
 */
export async function publishOverdue(service: Service, timeLeft: () => boolean): Promise<number> {
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
    const toldAt = service.clock();
    await service.reach("reconcile:reserved");
    if (isAway(waits)) break;
    const items = lost.slice(0, waits.length);
    if (items.length > 0) {
      const { publish } = await service.store.republish({ items });
      await service.reach("reconcile:handed-out");
      const waitOf = new Map(next.map((job, i) => [job.jobId, leftOf(service, waits[i] ?? 0, toldAt)]));
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

/** `slotInMs`: how far its slot is ahead, null where Redis knows none. A slot is kept for an hour after its time. */
function isLost(job: OverdueJob, slotInMs: number | null): boolean {
  return job.unpublished || slotInMs === null || slotInMs + job.graceMs <= 0;
}
