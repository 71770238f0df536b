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

/**
 * Every relation and function of our schemas, asked of the catalogue, as each reader: what is new without a case here is
 * closed to all of them, or a test fails.
 */
type Reader = { name: string; role: "anon" | "authenticated"; sub: string | null; owns: string[] };
const READERS: Reader[] = [
  { name: "anon", role: "anon", sub: null, owns: [] },
  { name: "anon with a forged subject", role: "anon", sub: "00000000-0000-4000-8000-00000000000a", owns: [] },
  { name: "alice", role: "authenticated", sub: "00000000-0000-4000-8000-00000000000a", owns: ["alice-account-0"] },
  { name: "bob", role: "authenticated", sub: "00000000-0000-4000-8000-00000000000b", owns: ["bob-account-0"] },
  { name: "a stranger who is signed in", role: "authenticated", sub: "00000000-0000-4000-8000-0000000000ff", owns: [] },
];

/** What a signed-in user may select, his own rows of each. Anything else in the catalogue is refused. */
const READABLE = new Set(
  ["accounts", "balances", "orders", "positions", "transactions"].map((name) => `snaptrade_${name}`),
);
/** What a signed-in user may call. */
const CALLABLE = new Set(["snaptrade_private.own_account_ids()"]);

/** Refused for want of a privilege, on the object or on its schema. */
const DENIED = "42501";

type Relation = { name: string; kind: "r" | "p" | "v" | "m" | "S" | "f" };
type Routine = { signature: string; call: string };

let database: LocalDatabase;
let relations: Relation[];
let routines: Routine[];

beforeAll(async () => {
  database = await freshDatabase();
  const { sql } = database;
  for (const reader of READERS.filter(({ owns }) => owns.length > 0)) {
    const [account = ""] = await seedAccounts(sql, reader.name, 1);
    await writeHoldings(sql, account, {
      balances: [aBalance()],
      positions: { positions: [aPosition()], asOf: null },
      orders: [anOrder()],
    });
    await writePage(sql, account, [anActivity()]);
    await sql`update public.snaptrade_users set auth_user_id = ${reader.sub}, secret_ciphertext = 'marked-ciphertext' where user_id = ${reader.name}`;
    await sql`insert into public.snaptrade_connections (connection_id, user_id) values (${`${reader.name}-connection`}, ${reader.name})`;
    await sql`insert into public.snaptrade_sync_jobs (work_type, account_id, reason) values ('holdings', ${account}, 'event')`;
    await sql`insert into public.snaptrade_webhook_events (webhook_id, account_id, user_id) values (${`w-${reader.name}`}, ${account}, ${reader.name})`;
  }
  await sql`insert into public.snaptrade_service_state (name) values ('heartbeat')`;
  const ours = sql`select oid from pg_namespace where nspname in ('public', 'snaptrade_private')`;
  relations = await sql<Relation[]>`
    select oid::regclass::text as name, relkind::text as kind from pg_class
    where relnamespace in (${ours}) and relkind in ('r', 'p', 'v', 'm', 'S', 'f') order by 1`;
  // A value for each argument: of a strict function that is given a null Postgres does not even ask who calls it.
  routines = await sql<Routine[]>`
    select oid::regprocedure::text as signature, format('select %s(%s)', oid::regproc,
      (select string_agg(format('%L::%s', case format_type(t, null) when 'jsonb' then '{}' when 'text[]' then '{}' when 'text' then 'x'
        when 'uuid' then '00000000-0000-4000-8000-000000000001' when 'timestamp with time zone' then 'now' when 'boolean' then 'true'
        when 'integer' then '1' when 'bigint' then '1' when 'numeric' then '1' end, format_type(t, null)), ', ' order by i) from unnest(proargtypes) with ordinality as a (t, i))) as call
    from pg_proc where pronamespace in (${ours}) and prokind in ('f', 'p') and prorettype <> 'trigger'::regtype order by 1`;
});
afterAll(() => database.close());

/** The rows of a statement as the reader, or the SQLSTATE of its refusal. Nothing that it does stays. */
async function as({ role, sub }: Reader, statement: string): Promise<postgres.Row[] | string> {
  try {
    return await database.sql.begin(async (tx) => {
      const claims = JSON.stringify(sub === null ? { role } : { role, sub });
      await tx`select set_config('request.jwt.claims', ${claims}, true), set_config('request.jwt.claim.sub', ${sub ?? ""}, true)`;
      await tx`set local role ${tx(role)}`;
      return [...(await tx.unsafe(statement))];
    });
  } catch (error) {
    if (error instanceof postgres.PostgresError) return error.code;
    throw error;
  }
}

it("the catalogue shows what there is: tables with their sequences, and functions", () => {
  expect(relations.map(({ name }) => name)).toEqual(
    expect.arrayContaining([...READABLE, "snaptrade_users", "snaptrade_fence"]),
  );
  expect(routines.length).toBeGreaterThan(40);
  expect(routines.map(({ signature }) => signature)).toEqual(expect.arrayContaining([...CALLABLE]));
});

describe.each(READERS)("$name", (reader) => {
  it("selects own rows of the readable five, and nothing of any other relation", async () => {
    for (const { name, kind } of relations) {
      const seen = await as(reader, `select * from ${name}`);
      if (reader.role === "anon" || !READABLE.has(name) || kind !== "r") {
        expect(seen, `${name} (${kind})`).toBe(DENIED);
        continue;
      }
      const accounts = Array.isArray(seen) ? seen.map((row) => row.account_id) : seen;
      expect(accounts, name).toEqual(reader.owns);
      expect(JSON.stringify(seen), name).not.toContain("ciphertext");
    }
  });

  it("selects nothing of another's by any condition, join or aggregate", async () => {
    if (reader.role === "anon") return;
    for (const name of READABLE) {
      const other = reader.name === "bob" ? "alice-account-0" : "bob-account-0";
      expect(await as(reader, `select 1 from ${name} where account_id = '${other}'`), name).toEqual([]);
      expect(await as(reader, `select count(*)::int as n from ${name}`), name).toEqual([{ n: reader.owns.length }]);
      expect(await as(reader, `select * from ${name} natural join snaptrade_users`), name).toBe(DENIED);
    }
  });

  it("inserts, updates, deletes, truncates, locks and alters nothing", async () => {
    for (const { name, kind } of relations) {
      if (kind === "S") {
        expect(await as(reader, `select nextval('${name}')`), name).toBe(DENIED);
        expect(await as(reader, `select setval('${name}', 1)`), name).toBe(DENIED);
        continue;
      }
      const [column] = await database.sql`
        select attname as name from pg_attribute where attrelid = ${name}::regclass and attnum > 0 and attgenerated = '' and attidentity = '' limit 1`;
      const any = [
        `insert into ${name} default values`,
        `update ${name} set ${column?.name} = default`,
        `delete from ${name}`,
      ];
      const tables = [
        `truncate ${name} cascade`,
        `lock table ${name} in exclusive mode`,
        `alter table ${name} disable row level security`,
        `create policy open on ${name} using (true)`,
        `create trigger t before insert on ${name} execute function snaptrade_private.own_account_ids()`,
      ];
      for (const statement of [...any, ...(kind === "r" || kind === "p" ? tables : [])]) {
        expect(await as(reader, statement), statement).toBe(DENIED);
      }
    }
  });

  it("calls no function but the one about himself", async () => {
    for (const { signature, call } of routines) {
      const called = await as(reader, call);
      if (reader.role === "anon" || !CALLABLE.has(signature)) expect(called, signature).toBe(DENIED);
      else expect(called, signature).toEqual([{ own_account_ids: reader.owns }]);
    }
  });

  it("makes nothing in our schemas, and changes no role", async () => {
    for (const statement of [
      "create table public.x (i int)",
      "create function public.x() returns int language sql as 'select 1'",
      "create table snaptrade_private.x (i int)",
      "alter role authenticated bypassrls",
    ]) {
      expect(await as(reader, statement), statement).toBe(DENIED);
    }
  });
});
