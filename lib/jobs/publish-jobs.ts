import type { Publishable } from "@/lib/domain";
import { type Away, isAway } from "@/lib/guards/redis-scripts";
import { jobMessage } from "@/lib/jobs/publisher";
import { field } from "@/lib/metrics/metric-names";
import type { Service } from "@/lib/service";

/** QStash takes a batch of any size up to 100 MB; this keeps one request well inside its time limit. */
const BATCH = 100;

/**
 * Publishes jobs whose delivery numbers Postgres has handed out. `waits` are their slots' waits, in order; where Redis was
 * away the job's own due time stands in. A publish that fails leaves its job queued: the promise is durable and the
 * reconcile cron publishes it. Never throws. Answers how many were published.
 */
export async function publishJobs(service: Service, jobs: Publishable[], waits: number[] | Away): Promise<number> {
  let published = 0;
  for (let from = 0; from < jobs.length; from += BATCH) {
    const batch = jobs.slice(from, from + BATCH);
    const messages = batch.map((job, i) =>
      jobMessage(job, (isAway(waits) ? undefined : waits[from + i]) ?? job.dueInMs),
    );
    const { results, reason } = await service.publisher.publish(messages);
    await service.reach("publish:sent");
    const failed = batch.filter((_, i) => results[i] !== "published");
    published += batch.length - failed.length;
    if (failed.length > 0) {
      service.logger.warn(
        { reason, jobIds: failed.slice(0, 20).map((job) => job.jobId), count: failed.length },
        "QStash did not take a publish; reconcile will",
      );
      await service.guards.count({ [field("qstash_publish_failures")]: failed.length });
    }
  }
  return published;
}

/**
 * What is left of a slot's wait that was told at `toldAtMs`: what Postgres has taken since is off the publish's delay, or the
 * delivery comes later than its slot counts. Milliseconds.
 */
export function leftOf(service: Service, waitMs: number, toldAtMs: number): number {
  return Math.max(0, waitMs - (service.clock() - toldAtMs));
}

/** Reserves the slots, wherever they fall, and publishes. Not for bulk work, which reserves before it accepts. */
export async function publishWithSlots(service: Service, jobs: Publishable[]): Promise<number> {
  if (jobs.length === 0) return 0;
  const waits = await service.guards.settleSlots(jobs);
  await service.reach("publish:slotted");
  return publishJobs(service, jobs, waits);
}
