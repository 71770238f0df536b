import type { MemoryPostgres } from "@/tests/histories/memory-postgres";
import type { LocalDatabase } from "@/tests/support/local-database";

/** What stands in the tables, in one form for Postgres and for its likeness in memory. */
export type Rows = { jobs: unknown[]; events: unknown[]; accounts: unknown[] };

export async function rowsOf(sql: LocalDatabase["sql"]): Promise<Rows> {
  const jobs = await sql`
    select id, work_type, account_id, status, attempts, delivery, fence::int, republished
    from snaptrade_sync_jobs order by id`;
  const events = await sql`
    select webhook_id, outcome, processed, finished_at is not null as finished,
      array(select j::text from unnest(job_ids) j order by 1) as job_ids
    from snaptrade_webhook_events order by webhook_id`;
  const accounts = await sql`
    select account_id, removed_at is not null as removed, detail_read_at is not null as detail_read,
      transactions_watermark::text as watermark, transactions_pages as pages, transactions_cursor is not null as in_the_middle,
      holdings_synced_at is not null as holdings_synced, transactions_synced_at is not null as transactions_synced,
      (select cash::text from snaptrade_balances b where b.account_id = a.account_id) as cash,
      (select units::text from snaptrade_positions p where p.account_id = a.account_id) as units,
      (select total_quantity::text from snaptrade_orders o where o.account_id = a.account_id) as quantity,
      array(select activity_id from snaptrade_transactions t where t.account_id = a.account_id order by 1) as transactions
    from snaptrade_accounts a order by account_id`;
  return { jobs: [...jobs], events: [...events], accounts: [...accounts] };
}

export function rowsInMemory(postgres: MemoryPostgres): Rows {
  return {
    jobs: postgres.jobs
      .map(({ id, workType, accountId, status, attempts, delivery, fence, republished }) => ({
        ...{ id, work_type: workType, account_id: accountId, status, attempts, delivery, fence, republished },
      }))
      .sort(by("id")),
    events: postgres.events
      .map(({ webhookId, outcome, processed, finished, jobIds }) => ({
        ...{ webhook_id: webhookId, outcome, processed, finished, job_ids: jobIds.toSorted() },
      }))
      .sort(by("webhook_id")),
    accounts: [...postgres.accounts.values()]
      .map((account) => ({
        account_id: account.accountId,
        removed: account.removedAt !== null,
        detail_read: account.detailRead,
        watermark: account.watermark,
        pages: account.pages,
        in_the_middle: account.cursor !== null,
        holdings_synced: account.syncedAt.holdings !== null,
        transactions_synced: account.syncedAt.transactions !== null,
        cash: account.holdings.balances?.[0]?.cash ?? null,
        units: account.holdings.positions?.positions[0]?.units ?? null,
        quantity: account.holdings.orders?.[0]?.totalQuantity ?? null,
        transactions: [...account.transactions.keys()].sort(),
      }))
      .sort(by("account_id")),
  };
}

function by<K extends string>(name: K) {
  return (a: Record<K, string>, b: Record<K, string>) => (a[name] < b[name] ? -1 : 1);
}
