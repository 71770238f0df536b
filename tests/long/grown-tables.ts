import type { Sql } from "postgres";
import { z } from "zod";
import type { Subjects } from "@/tests/support/sql-moves";

/** The tables of a service that has run for a month: all of it is settled, nothing waits. */
export type Grown = { events: number; accounts: number; users: number };

/**
 * So many finished jobs and events of a month, five a (holdings) key; two accounts a user. A tenth of the accounts is stale,
 * the last ones by number, and the connection of every other pair of these disabled; a fiftieth of the users is due for the
 * daily comparison.
 */
export async function growTables(sql: Sql, events: number): Promise<Grown> {
  const accounts = Math.floor(events / 5);
  const users = Math.floor(accounts / 2);
  // Without autovacuum the statistics are those that a test asks for, and calls that are rolled back leave no work behind.
  const tables = ["accounts", "users", "sync_jobs", "webhook_events"].map((name) => `snaptrade_${name}`);
  for (const table of tables) await sql.unsafe(`alter table ${table} set (autovacuum_enabled = false)`);
  await sql.unsafe(`
    insert into snaptrade_users (user_id, secret_ciphertext, created_at, compared_at, listed_at)
      select 'user-' || i, 'c', now() - interval '40 days', at, at
      from generate_series(0, ${users - 1}) i, lateral (select now() - i * interval '24.5 hours' / ${users} as at) spread;
    insert into snaptrade_connections (connection_id, user_id, disabled)
      select 'conn-' || i, 'user-' || i, i >= ${users * 0.9} and i % 2 = 0 from generate_series(0, ${users - 1}) i;
    insert into snaptrade_accounts (account_id, user_id, connection_id, detail_read_at, transactions_watermark,
        holdings_attempted_at, transactions_attempted_at, holdings_synced_at, transactions_synced_at)
      select 'acct-' || i, 'user-' || i / 2, 'conn-' || i / 2, case when i % 10 > 0 then now() end,
        case when i % 10 > 0 then current_date end, at, at, at, at
      from generate_series(0, ${accounts - 1}) i,
        lateral (select now() - case when i >= ${accounts * 0.9} then interval '40 hours' else interval '1 hour' end
          - i * interval '1 millisecond' as at) spread;
    insert into snaptrade_positions (account_id, position_key, kind, raw) select account_id, 'p', 'equity', '{}' from snaptrade_accounts;
    insert into snaptrade_balances (account_id, currency) select account_id, 'USD' from snaptrade_accounts;
    insert into snaptrade_transactions (account_id, activity_id, fingerprint, occurrence, trade_date, raw)
      select account_id, 'a-' || account_id, 'f', 1, current_date, '{}' from snaptrade_accounts;
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, fence, created_at, started_at, finished_at)
      select case when i % 5 < 3 then 'holdings' else 'transactions' end, 'acct-' || i / 5, 'event', 'done', 1, i, at, at, at
      from generate_series(0, ${accounts * 5 - 1}) i, lateral (select now() - i * interval '31 days' / ${events} as at) spread;
    insert into snaptrade_webhook_events (webhook_id, event_type, account_id, connection_id, user_id, outcome, processed,
        job_ids, event_timestamp, received_at, finished_at, payload)
      select 'old-' || row_number() over (), 'ACCOUNT_HOLDINGS_UPDATED', account_id, null, null, 'accepted', true, array[id],
        created_at, created_at, finished_at, '{}'
      from snaptrade_sync_jobs;
    insert into snaptrade_service_state (name, value) values ('sweep', '{"sweepId": "sweep"}')`);
  await sql.unsafe("analyze");
  return { events, accounts, users };
}

export type Storm = { queued: number; running: number; dead: number; waiting: number; subjects: Subjects };

/** A storm on top: queued jobs that QStash holds back, two open events each; some run, some are dead, some events wait. */
export async function storm(sql: Sql, grown: Grown): Promise<Storm> {
  const queued = Math.floor(grown.accounts / 4);
  const running = 100;
  const dead = Math.floor(grown.accounts / 200);
  const waiting = Math.floor(grown.accounts / 100);
  await sql.unsafe(`
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, due_at, published_at)
      select 'holdings', 'acct-' || i, 'event', 'queued', 1, now(), now() from generate_series(0, ${queued - 1}) i;
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, fence, lease_until, started_at)
      select 'holdings', 'acct-' || i, 'event', 'running', 1, i, now() + interval '1 hour', now() - interval '10 seconds'
      from generate_series(${queued}, ${queued + running - 1}) i;
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, fence, lease_until, started_at)
      select 'transactions', 'acct-' || i, 'event', 'running', 1, i, now() + interval '1 hour', now() - interval '10 seconds'
      from generate_series(${queued}, ${queued + running - 1}) i;
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, finished_at)
      select 'holdings', 'acct-' || i, 'event', 'dead', 1, now() from generate_series(${queued + running}, ${queued + running + dead - 1}) i;
    insert into snaptrade_webhook_events (webhook_id, event_type, account_id, outcome, processed, job_ids, event_timestamp, payload)
      select kind || '-' || account_id || '-' || work_type, 'ACCOUNT_HOLDINGS_UPDATED', account_id, kind, kind = 'accepted',
        array[id], now(), '{}'
      from snaptrade_sync_jobs, unnest(array['accepted', 'coalesced']) kind where status in ('queued', 'running');
    insert into snaptrade_webhook_events (webhook_id, event_type, account_id, connection_id, user_id, outcome, event_timestamp, payload)
      select 'waiting-' || i, 'ACCOUNT_HOLDINGS_UPDATED', 'nobodys-' || i, 'nobodys-' || i, 'nobody-' || i, 'waiting', now(), '{}'
      from generate_series(1, ${waiting}) i`);
  const queuedOne = `acct-${Math.floor(queued / 2)}`;
  const runningOne = queued + 7;
  // A multiple of ten is bare; what stands behind the dead is idle.
  const bare = Math.ceil((grown.accounts * 0.8) / 10) * 10;
  const jobs = z.array(z.object({ id: z.string(), key: z.string() })).parse(
    await sql`select id, work_type || ' ' || account_id as key from snaptrade_sync_jobs
      where status in ('queued', 'running') and account_id in (${queuedOne}, ${`acct-${runningOne}`})`,
  );
  const idOf = new Map(jobs.map(({ id, key }) => [key, id]));
  return {
    queued,
    running: 2 * running,
    dead,
    waiting,
    subjects: {
      queued: queuedOne,
      running: { account: `acct-${runningOne}`, fence: runningOne },
      idle: { account: `acct-${bare + 1}`, user: `user-${bare / 2}`, connection: `conn-${bare / 2}` },
      bare: `acct-${bare}`,
      seenWebhook: `accepted-${queuedOne}-holdings`,
      jobOf: (account, workType = "holdings") => idOf.get(`${workType} ${account}`) ?? "",
    },
  };
}
