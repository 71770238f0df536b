import type { Publishable, SyncKey } from "@/lib/domain";
import { type Away, isAway } from "@/lib/guards/redis-scripts";
import { BULK_HORIZON_MS } from "@/lib/jobs/accept-bulk";
import { leftOf, publishJobs } from "@/lib/jobs/publish-jobs";
import type { Service } from "@/lib/service";

/** `delivery`: the newest that was handed out; the replay is the one after it. */
export type DeadJob = SyncKey & { jobId: string; delivery: number; calls: number };

/** What became of the first `taken` jobs, by id; the rest had no slot within a minute and must come again. */
export type Replay = {
  taken: number;
  queued: string[];
  superseded: string[];
  notDead: string[];
  /** Queued, but QStash did not take the message: reconcile publishes it. */
  unpublished: number;
};

/**
 * Puts dead jobs back into the queue with fresh attempts (dead -> queued, or superseded where a queued job stands). Bulk
 * work: each only together with its slot and at most a minute ahead, so the slots come first, under the delivery that
 * Postgres is about to hand out. Slots that were not needed go back. While Redis is away nothing is replayed.
 */
export async function replayDead(service: Service, jobs: DeadJob[]): Promise<Replay | Away> {
  const items = jobs.map((job) => ({ ...job, delivery: job.delivery + 1 }));
  const waits = await service.guards.reserveSlots(items, BULK_HORIZON_MS);
  const toldAt = service.clock();
  if (isAway(waits)) return waits;
  const granted = items.slice(0, waits.length);
  if (granted.length === 0) return { taken: 0, queued: [], superseded: [], notDead: [], unpublished: 0 };
  const { publish, superseded, notDead } = await service.store.replay({
    items: granted.map(({ jobId, workType, accountId }) => ({ jobId, workType, accountId })),
  });

  const published = new Set(publish.map(deliveryName));
  const unused = granted.filter((item) => !published.has(deliveryName(item)));
  if (unused.length > 0) {
    await service.guards.giveBackSlots(
      unused.map(({ jobId, delivery }) => ({ jobId, delivery, retried: 0 })),
      {},
    );
  }
  const waitOf = new Map(granted.map((item, i) => [deliveryName(item), leftOf(service, waits[i] ?? 0, toldAt)]));
  const taken = await publishJobs(
    service,
    publish,
    // A job that died again between the list and now has another delivery: it takes its slot when it is delivered.
    publish.map((job) => waitOf.get(deliveryName(job)) ?? job.dueInMs),
  );
  const others = new Set([...superseded, ...notDead]);
  return {
    taken: granted.length,
    queued: granted.map(({ jobId }) => jobId).filter((jobId) => !others.has(jobId)),
    superseded,
    notDead,
    unpublished: publish.length - taken,
  };
}

function deliveryName({ jobId, delivery }: Pick<Publishable, "jobId" | "delivery">): string {
  return `${jobId}-${delivery}`;
}
