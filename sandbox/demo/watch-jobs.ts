import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import { z } from "zod";

export type JobCounts = { queued: number; running: number; done: number; all: number; events: number };

const counts = z.object({
  queued: z.number(),
  running: z.number(),
  done: z.number(),
  all: z.number(),
  events: z.number(),
});

export async function countJobs(sql: Sql): Promise<JobCounts> {
  const [found] = await sql`
    select count(*) filter (where status = 'queued')::int as queued,
      count(*) filter (where status = 'running')::int as running,
      count(*) filter (where status = 'done')::int as done,
      count(*)::int as all,
      (select count(*)::int from snaptrade_webhook_events) as events
    from snaptrade_sync_jobs`;
  return counts.parse(found);
}

const LOOK_EVERY_MS = 250;
/** A coalesced event is written after its answer, and may then still ask for a run. */
const STILL_FOR_MS = 2_000;

/** Resolves with true when no job was queued or running and no event came in for two seconds, false after the limit. */
export async function waitUntilQuiet(sql: Sql, limitMs: number, stopped: () => boolean): Promise<boolean> {
  const until = Date.now() + limitMs;
  let stillSince: number | null = null;
  let events = -1;
  while (Date.now() < until && !stopped()) {
    const now = await countJobs(sql);
    if (now.queued + now.running > 0 || now.events !== events) stillSince = null;
    else stillSince ??= Date.now();
    events = now.events;
    if (stillSince !== null && Date.now() - stillSince >= STILL_FOR_MS) return true;
    await sleep(LOOK_EVERY_MS);
  }
  return false;
}
