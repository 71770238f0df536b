import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  aBalance,
  anActivity,
  anOrder,
  aPosition,
  seedAccounts,
  writeHoldings,
  writePage,
} from "@/tests/integration/sql/synced-data-rows";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

const READABLE = [
  "snaptrade_accounts",
  "snaptrade_balances",
  "snaptrade_orders",
  "snaptrade_positions",
  "snaptrade_transactions",
];
const ALICE = "00000000-0000-4000-8000-00000000000a";
const BOB = "00000000-0000-4000-8000-00000000000b";
const DELETED = "00000000-0000-4000-8000-00000000000d";

let database: LocalDatabase;
let tables: string[];

/** What PostgREST does with a request: the role and the claims of the token, for one transaction. */
function as<T>(
  role: "anon" | "authenticated" | "service_role",
  sub: string | null,
  work: (tx: postgres.TransactionSql) => Promise<T>,
) {
  return database.sql.begin(async (tx) => {
    const claims = sub === null ? { role } : { role, sub };
    // auth.uid() reads the one or the other, by its age.
    await tx`select set_config('request.jwt.claims', ${JSON.stringify(claims)}, true),
      set_config('request.jwt.claim.sub', ${sub ?? ""}, true)`;
    await tx`set local role ${tx(role)}`;
    return work(tx);
  });
}

/** The SQLSTATE with which a statement is refused; undefined when it is not. */
async function errorOf(role: "anon" | "authenticated", sub: string | null, statement: string): Promise<unknown> {
  try {
    await as(role, sub, (tx) => tx.unsafe(statement));
    return undefined;
  } catch (error) {
    return error instanceof postgres.PostgresError ? error.code : error;
  }
}

const WRITES = [
  (table: string) => `insert into public.${table} default values`,
  (table: string) => `delete from public.${table}`,
  (table: string) => `truncate public.${table} cascade`,
];

async function accountsSeen(sub: string | null, table: string): Promise<string[]> {
  const rows = await as("authenticated", sub, (tx) => tx`select * from ${tx(`public.${table}`)}`);
  return rows.map((row) => String(row.account_id)).toSorted();
}

beforeAll(async () => {
  database = await freshDatabase();
  const { sql } = database;
  for (const [user, authUser] of [
    ["alice", ALICE],
    ["alice-too", ALICE],
    ["bob", BOB],
    ["deleted", DELETED],
    ["nobody", null],
  ] as const) {
    for (const account of await seedAccounts(sql, user, 2)) {
      const positions = { positions: [aPosition()], asOf: null };
      await writeHoldings(sql, account, { balances: [aBalance()], positions, orders: [anOrder()] });
      await writePage(sql, account, [anActivity()]);
    }
    await sql`
      update public.snaptrade_users set auth_user_id = ${authUser}, secret_ciphertext = 'ciphertext',
        deleted_at = case when user_id = 'deleted' then now() end
      where user_id = ${user}`;
  }
  await sql`update public.snaptrade_accounts set removed_at = now() where account_id = 'alice-account-1'`;
  await sql`insert into public.snaptrade_connections (connection_id, user_id) values ('connection', 'alice')`;
  await sql`insert into public.snaptrade_sync_jobs (work_type, account_id, reason) values ('holdings', 'alice-account-0', 'event')`;
  await sql`insert into public.snaptrade_webhook_events (webhook_id, account_id, user_id) values ('w-1', 'alice-account-0', 'alice')`;
  await sql`insert into public.snaptrade_service_state (name) values ('heartbeat')`;
  const found = await sql`
    select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by relname`;
  tables = found.map((row) => String(row.relname));
});
afterAll(() => database.close());

it("is on for every table in the schema that the API exposes", async () => {
  const off = await database.sql`
    select relname from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relrowsecurity`;
  expect(off).toEqual([]);
  expect(tables).toEqual(expect.arrayContaining([...READABLE, "snaptrade_users", "snaptrade_webhook_events"]));
});

describe("a signed-in user", () => {
  it.each(READABLE)("reads the rows of all of his own accounts in %s, and of no others", async (table) => {
    const own = ["alice-account-0", "alice-account-1", "alice-too-account-0", "alice-too-account-1"];
    expect(await accountsSeen(ALICE, table)).toEqual(own);
    expect(await accountsSeen(BOB, table)).toEqual(["bob-account-0", "bob-account-1"]);
  });

  it.each(READABLE)("who was deleted, is unknown, or has no id reads nothing in %s", async (table) => {
    expect(await accountsSeen(DELETED, table)).toEqual([]);
    expect(await accountsSeen("00000000-0000-4000-8000-0000000000ff", table)).toEqual([]);
    expect(await accountsSeen(null, table)).toEqual([]);
  });

  it("reads no other table at all", async () => {
    for (const table of tables.filter((name) => !READABLE.includes(name))) {
      expect(await errorOf("authenticated", ALICE, `select * from public.${table}`), table).toBe("42501");
    }
  });

  it("writes nothing", async () => {
    for (const table of tables) {
      for (const statement of WRITES) {
        expect(await errorOf("authenticated", ALICE, statement(table)), statement(table)).toBe("42501");
      }
    }
    expect(await errorOf("authenticated", ALICE, "update public.snaptrade_accounts set name = 'mine'")).toBe("42501");
  });

  it("pays for the question whose accounts are his once a query, and reads by index", async () => {
    const { sql } = database;
    await sql`
      insert into public.snaptrade_accounts (account_id, user_id) select 'many-' || i, 'nobody' from generate_series(1, 500) i`;
    await sql`
      insert into public.snaptrade_transactions (account_id, activity_id, fingerprint, occurrence, trade_date, raw)
      select 'many-' || a, 't-' || t, 't-' || t, 1, current_date - t, '{}' from generate_series(1, 500) a, generate_series(1, 20) t`;
    await sql`analyze public.snaptrade_accounts, public.snaptrade_transactions`;
    const plan = await as("authenticated", ALICE, (tx) => tx`explain select * from public.snaptrade_transactions`);
    const text = plan.map((row) => String(row["QUERY PLAN"])).join("\n");
    expect(text).toMatch(/InitPlan/);
    expect(text).not.toMatch(/SubPlan|Seq Scan/);
    expect(text).toMatch(/Index Cond: \(account_id = ANY/);
  });
});

describe("anon", () => {
  it("reads and writes nothing", async () => {
    for (const table of tables) {
      for (const statement of [...WRITES, (name: string) => `select * from public.${name}`]) {
        expect(await errorOf("anon", null, statement(table)), statement(table)).toBe("42501");
      }
    }
  });

  it("may not ask whose accounts are whose", async () => {
    expect(await errorOf("anon", ALICE, "select snaptrade_private.own_account_ids()")).toBe("42501");
  });
});

it("the service role reads and writes every row", async () => {
  const counted = await as("service_role", null, (tx) => tx`select count(*)::int from public.snaptrade_positions`);
  expect(counted[0]?.count).toBe(10);
  const written = await as(
    "service_role",
    null,
    (tx) => tx`
    select public.snaptrade_write_holdings('bob-account-0', ${tx.json({ balances: [] })}) -> 'balances' ->> 'deleted' as deleted`,
  );
  expect(written[0]?.deleted).toBe("1");
});
