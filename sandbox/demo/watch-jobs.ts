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

/** The keys that a job still stands for, as the comparison names them: their data may differ yet, and nothing is lost. */
export async function openKeys(sql: Sql): Promise<string[]> {
  const found = await sql`
    select distinct account_id || ' ' || work_type as key from snaptrade_sync_jobs where status in ('queued', 'running')`;
  return found.map((row) => String(row.key));
}

/** Calls that the jobs still want. */
export async function countCallsDue(sql: Sql): Promise<number> {
  const [found] = await sql`
    select coalesce(sum(snaptrade_calls(work_type, account_id)), 0)::int as calls
    from snaptrade_sync_jobs where status in ('queued', 'running')`;
  return Number(found?.calls);
}

/** For what no limit explains: leases of a killed app, retries, spacing, a busy machine. */
const SLACK_MS = 150_000;
/** The share that background work has by default; a fifth is added for slots that a busy machine misses. */
const BACKGROUND_SHARE = 0.75;
const MISSED = 1.2;

/** How long the jobs may take to end once no event comes any more: the limit in force decides, whatever it is. */
export function drainLimitMs(callsDue: number, callsAMinute: number): number {
  return SLACK_MS + Math.ceil(((callsDue * MISSED) / (callsAMinute * BACKGROUND_SHARE)) * 60_000);
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
