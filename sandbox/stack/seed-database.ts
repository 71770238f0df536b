import postgres from "postgres";
import { encryptSecret } from "@/lib/secrets";
import type { SimAccount, SimConnection, SimUser } from "@/sandbox/snaptrade/world";
import { accountRows } from "@/sandbox/stack/account-rows";

export type Seed = {
  users: SimUser[];
  connections: SimConnection[];
  accounts: SimAccount[];
  secretsKey: Buffer;
  /** The accounts exist and were never synced. */
  fresh: boolean;
};

const ACCOUNTS_A_CALL = 25;
const CONNECTIONS = 4;

/**
 * Writes the simulator's users, connections and accounts, and unless `fresh` their data, by the service's own SQL
 * functions: as after a sync that ended now, so that nothing is stale. What a former seed left of these accounts in a
 * database that was given is replaced. 300 accounts with 18,000 transactions take about two seconds.
 */
export async function seedDatabase(databaseUrl: string, seed: Seed): Promise<void> {
  const sql = postgres(databaseUrl, { max: CONNECTIONS, onnotice: () => undefined });
  try {
    await seedOwners(sql, seed);
    const batches: SimAccount[][] = [];
    for (let from = 0; from < seed.accounts.length; from += ACCOUNTS_A_CALL) {
      batches.push(seed.accounts.slice(from, from + ACCOUNTS_A_CALL));
    }
    const connections = new Map(seed.connections.map((connection) => [connection.connectionId, connection]));
    let next = 0;
    const work = async () => {
      for (let batch = batches[next++]; batch !== undefined; batch = batches[next++]) {
        await seedAccounts(sql, batch, connections, seed.fresh);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, work));
  } finally {
    await sql.end();
  }
}

async function seedOwners(sql: postgres.Sql, { users, connections, secretsKey }: Seed): Promise<void> {
  const userRows = users.map(({ userId, userSecret }) => ({
    user_id: userId,
    secret_ciphertext: encryptSecret(userSecret, [secretsKey], userId),
  }));
  const connectionRows = connections.map(({ connectionId, userId, brokerage, disabledDate }) => ({
    connection_id: connectionId,
    user_id: userId,
    brokerage: brokerage.slug,
    disabled: disabledDate !== null,
  }));
  await sql`
    insert into snaptrade_users (user_id, secret_ciphertext)
    select * from json_to_recordset(${asJson(userRows)}::text::json) as u (user_id text, secret_ciphertext text)
    on conflict (user_id) do update set secret_ciphertext = excluded.secret_ciphertext, deleted_at = null`;
  await sql`
    insert into snaptrade_connections (connection_id, user_id, brokerage, disabled)
    select * from json_to_recordset(${asJson(connectionRows)}::text::json)
      as c (connection_id text, user_id text, brokerage text, disabled boolean)
    on conflict (connection_id) do update set brokerage = excluded.brokerage, disabled = excluded.disabled,
      state_at = null, removed_at = null`;
}

async function seedAccounts(
  sql: postgres.Sql,
  accounts: SimAccount[],
  connections: ReadonlyMap<string, SimConnection>,
  fresh: boolean,
): Promise<void> {
  const rows = accounts.map((account) => {
    const connection = connections.get(account.connectionId);
    if (connection === undefined) throw new Error(`${account.accountId} has no connection in the simulator`);
    const { detail, holdings, activities } = accountRows(account, connection, Date.now());
    return { accountId: account.accountId, userId: account.userId, detail, holdings, activities };
  });
  const owned = rows.map(({ accountId, userId, detail }) => ({
    account_id: accountId,
    connection_id: detail.connectionId,
    user_id: userId,
    institution_account_id: detail.institutionAccountId,
    name: detail.name,
    currency: detail.currency,
    transactions_ready: detail.transactionsInitialSyncCompleted,
  }));
  const ids = rows.map(({ accountId }) => accountId);
  await sql.begin(async (tx) => {
    for (const table of ["balances", "positions", "orders", "transactions"]) {
      await tx`delete from ${tx(`snaptrade_${table}`)} where account_id = any (${ids})`;
    }
    await tx`
      insert into snaptrade_accounts as a (account_id, connection_id, user_id, institution_account_id, name, currency,
        transactions_ready, detail_read_at)
      select r.*, clock_timestamp() from json_to_recordset(${asJson(owned)}::text::json) as r (account_id text,
        connection_id text, user_id text, institution_account_id text, name text, currency text, transactions_ready boolean)
      on conflict (account_id) do update set (connection_id, user_id, institution_account_id, name, currency,
        transactions_ready, detail_read_at,
        holdings_synced_at, transactions_synced_at, transactions_watermark, transactions_cursor, transactions_pages,
        holdings_attempted_at, transactions_attempted_at, holdings_retry_at, positions_as_of, failed_parts,
        failed_parts_at, state_at, removed_at)
        = (excluded.connection_id, excluded.user_id, excluded.institution_account_id, excluded.name, excluded.currency,
        excluded.transactions_ready, excluded.detail_read_at, null, null, null, null, 1, null, null, null, null, '{}', null, null, null)`;
    if (fresh) return;
    await tx`
      select snaptrade_write_holdings(r."accountId", r.holdings), snaptrade_write_transactions(r."accountId", r.activities, null, null)
      from json_to_recordset(${asJson(rows)}::text::json) as r ("accountId" text, holdings jsonb, activities jsonb)`;
    // The last attempt was a minute ago, so that the first event of an account does not wait for the spacing.
    await tx`
      update snaptrade_accounts set holdings_synced_at = clock_timestamp(), transactions_synced_at = clock_timestamp(),
        transactions_watermark = (clock_timestamp() at time zone 'UTC')::date,
        holdings_attempted_at = clock_timestamp() - interval '1 minute',
        transactions_attempted_at = clock_timestamp() - interval '1 minute'
      where account_id = any (${ids})`;
  });
}

/** As text: the driver would otherwise write JSON of its own over it. */
function asJson(value: unknown): string {
  return JSON.stringify(value);
}
