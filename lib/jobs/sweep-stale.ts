import { z } from "zod";
import { WORK_TYPES } from "@/lib/domain";
import { isAway } from "@/lib/guards/redis-scripts";
import { acceptBulk, BULK_HORIZON_MS } from "@/lib/jobs/accept-bulk";
import { publishJobs } from "@/lib/jobs/publish-jobs";
import { SWEEP_PATH } from "@/lib/jobs/publisher";
import { field } from "@/lib/metrics/metric-names";
import { timestampText } from "@/lib/provider/timestamp-text";
import type { Service } from "@/lib/service";
import { isId } from "@/lib/webhook/event-ids";

/** A sweep whose pages stopped coming (a lost message, a crash) is taken over after this. */
const GUARD_MS = 5 * 60_000;
/**
 * Keys of one page. They are accepted in one transaction, which holds the locks of all of them: 200 take a tenth of the
 * time limit of a call, 1000 have taken all of it on a busy database. Where the budget has room the next page comes at once.
 */
const PAGE = 200;

/** As Postgres writes it: never attempted is minus infinity. */
const attempted = z.string().refine((text) => text === "-infinity" || timestampText(text) !== null);

/** What Postgres could not read is no page: no retry of it could end otherwise. */
export const sweepMessage = z.object({
  sweepId: z.string().refine(isId),
  page: z.number().int().nonnegative(),
  cursor: z.object({ workType: z.enum(WORK_TYPES), attempted, accountId: z.string().refine(isId) }).nullable(),
});
type SweepMessage = z.infer<typeof sweepMessage>;

export type SweepStart = "started" | "already_running" | "not_published";

/** Starts a sweep of stale accounts, unless one is under way: publishes its first page. */
export async function startSweep(service: Service): Promise<SweepStart> {
  const sweepId = service.newId();
  const { started } = await service.store.startSweep({ sweepId, guardMs: GUARD_MS });
  await service.reach("sweep:started");
  if (!started) return "already_running";
  return (await publishPage(service, { sweepId, page: 0, cursor: null }, 0)) ? "started" : "not_published";
}

export type SweepPage = { outcome: "page" | "finished" | "replaced" | "redis_away"; listed: number; published: number };

/**
 * One page: the stale keys behind the cursor, least recently attempted first, as many as have a slot within a minute;
 * then the next page is published for when that minute is over. An empty page ends the sweep.
 */
export async function sweepPage(service: Service, message: SweepMessage): Promise<SweepPage> {
  const { sweepId, cursor } = message;
  const { staleAfterMs } = service.env.limits;
  const stale = await service.store.listStale({ sweepId, cursor, limit: PAGE, staleMs: staleAfterMs });
  await service.reach("sweep:listed");
  if (!stale.current) return { outcome: "replaced", listed: 0, published: 0 };
  if (stale.keys.length === 0) return { outcome: "finished", listed: 0, published: 0 };
  const bulk = await acceptBulk(service, "sweep", stale.keys);
  if (isAway(bulk)) {
    // The next cron call starts a new sweep; nothing was accepted.
    await service.store.endSweep({ sweepId });
    return { outcome: "redis_away", listed: stale.keys.length, published: 0 };
  }
  const published = await publishJobs(service, bulk.publish, bulk.waits);
  await service.reach("sweep:published");
  const last = bulk.taken === 0 ? undefined : stale.keys[bulk.taken - 1];
  const next =
    last === undefined ? cursor : { workType: last.workType, attempted: last.attempted, accountId: last.accountId };
  // Its minute comes when what was just taken has been read; at once if the list, not the budget, was at its end.
  const delayMs =
    bulk.taken < stale.keys.length ? Math.max(5_000, Math.min(BULK_HORIZON_MS, bulk.waits.at(-1) ?? 15_000)) : 0;
  await publishPage(service, { sweepId, page: message.page + 1, cursor: next }, delayMs);
  return { outcome: "page", listed: stale.keys.length, published };
}

async function publishPage(service: Service, body: SweepMessage, delayMs: number): Promise<boolean> {
  const message = { path: SWEEP_PATH, body, delayMs, dedupe: `${body.sweepId}-page-${body.page}` };
  const { results, reason } = await service.publisher.publish([message]);
  await service.reach("sweep:page-published");
  if (results[0] === "published") return true;
  service.logger.error(
    { sweepId: body.sweepId, page: body.page, reason },
    "The next page of the sweep could not be published",
  );
  await service.guards.count({ [field("qstash_publish_failures")]: 1 });
  await service.store.endSweep({ sweepId: body.sweepId });
  return false;
}
