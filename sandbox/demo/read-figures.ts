import type { Sql } from "postgres";
import { z } from "zod";
import type { LoggedCall } from "@/sandbox/snaptrade/call-log";

export type Figures = {
  jobs: number;
  /** Commits, `running -> done`. */
  runs: number;
  wastedRuns: number;
  callsNeeded: number;
  /** Without those that a job still stands for. */
  staleAccounts: string[];
  /** When the last job ended; null without jobs. */
  lastEndAt: Date | null;
};

const row = z.object({
  jobs: z.number(),
  runs: z.number(),
  wasted: z.number(),
  holdings_runs: z.number(),
  new_accounts: z.number(),
  stale: z.array(z.string()),
  last_end_at: z.date().nullable(),
});
const transactionsRun = z.object({ account_id: z.string(), started_at: z.date(), finished_at: z.date() });

const HOLDINGS_CALLS = 3;

/**
 * The demo's figures from Postgres, by its clock, in a database that held no job before. Events are found by the jobs
 * that they name: a job that was superseded has handed its events on.
 * `accounts`: those that were there before; another one costs one call more.
 */
export async function readFigures(
  sql: Sql,
  accounts: readonly string[],
  calls: readonly LoggedCall[],
): Promise<Figures> {
  const [found] = await sql`
    with covered as materialized (
      select j.work_type, j.account_id, e.received_at
      from snaptrade_webhook_events e
      cross join unnest(e.job_ids) as job (id)
      join snaptrade_sync_jobs j on j.id = job.id
      where e.outcome in ('accepted', 'coalesced')
    ), run as materialized (
      select work_type, account_id, reason, started_at,
        lag(started_at, 1, '-infinity') over (partition by work_type, account_id order by started_at) as previous_start
      from snaptrade_sync_jobs where status = 'done'
    ), latest as (
      select work_type, account_id, max(started_at) as started_at from run group by 1, 2
    )
    select
      (select count(*)::int from snaptrade_sync_jobs) as jobs,
      (select count(*)::int from run) as runs,
      (select count(*)::int from run r where r.reason = 'event' and not exists (select from covered c
        where c.work_type = r.work_type and c.account_id = r.account_id
          and c.received_at > r.previous_start and c.received_at <= r.started_at)) as wasted,
      (select count(*)::int from run where work_type = 'holdings') as holdings_runs,
      (select count(*)::int from snaptrade_accounts a
        where a.account_id <> all (${accounts}) and a.detail_read_at is not null) as new_accounts,
      array(select distinct c.account_id from covered c left join latest l using (work_type, account_id)
        where c.received_at > coalesce(l.started_at, '-infinity')
          and not exists (select from snaptrade_sync_jobs o where o.work_type = c.work_type
            and o.account_id = c.account_id and o.status in ('queued', 'running'))
          and not snaptrade_account_is_gone(c.account_id) order by 1) as stale,
      (select max(finished_at) from snaptrade_sync_jobs) as last_end_at`;
  const figures = row.parse(found);
  const pages = countPages(
    z.array(transactionsRun).parse(
      await sql`
      select account_id, started_at, finished_at from snaptrade_sync_jobs
      where work_type = 'transactions' and status = 'done'`,
    ),
    calls,
  );
  return {
    jobs: figures.jobs,
    runs: figures.runs,
    wastedRuns: figures.wasted,
    callsNeeded: HOLDINGS_CALLS * figures.holdings_runs + pages + figures.new_accounts,
    staleAccounts: figures.stale,
    lastEndAt: figures.last_end_at,
  };
}

/** The pages that each committed run read: the calls that SnapTrade answered between its begin and its commit. */
function countPages(runs: z.infer<typeof transactionsRun>[], calls: readonly LoggedCall[]): number {
  const readAt = new Map<string, number[]>();
  for (const { account, path, status, at } of calls) {
    if (account === null || status !== 200 || !path.endsWith("/activities")) continue;
    readAt.set(account, [...(readAt.get(account) ?? []), Date.parse(at)]);
  }
  const pagesOf = ({ account_id, started_at, finished_at }: (typeof runs)[number]) =>
    (readAt.get(account_id) ?? []).filter((at) => at >= started_at.getTime() && at <= finished_at.getTime()).length;
  return runs.reduce((sum, run) => sum + pagesOf(run), 0);
}
