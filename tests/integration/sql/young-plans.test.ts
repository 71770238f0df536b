import { randomUUID } from "node:crypto";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";
import { readsOf } from "@/tests/support/sql-reads";

/** A plan lives as long as its connection, and nothing makes it anew while the tables fill up. */
const ACCOUNTS = 3_000;
/** After so many calls Postgres may keep a plan for every request to come. */
const PLANNED_FOR_GOOD = 6;

let database: LocalDatabase;
let connection: postgres.Sql;

beforeAll(async () => {
  database = await freshDatabase();
  connection = postgres(database.url, { max: 1, onnotice: () => undefined });
  await database.sql.unsafe(`
    alter table snaptrade_sync_jobs set (autovacuum_enabled = false);
    alter table snaptrade_webhook_events set (autovacuum_enabled = false);
    insert into snaptrade_users (user_id) values ('user');
    insert into snaptrade_accounts (account_id, user_id, detail_read_at) select 'acct-' || i, 'user', now() from generate_series(1, ${ACCOUNTS}) i;
    analyze`);
  for (let i = 0; i < PLANNED_FOR_GOOD; i += 1) {
    for (const [, request] of lists)
      await connection`select snaptrade_list_jobs(${JSON.stringify(request)}::text::jsonb)`;
  }
  const tenth = ACCOUNTS / 10;
  for (let from = 0; from < ACCOUNTS - tenth; from += tenth) {
    const request = accept(Array.from({ length: tenth }, (_, i) => from + i + 1));
    await connection`select snaptrade_accept_jobs(${JSON.stringify(request)}::text::jsonb)`;
  }
  const [row] = await connection`select count(*)::int as jobs from snaptrade_sync_jobs where status = 'queued'`;
  expect(row).toEqual({ jobs: ACCOUNTS - tenth });
});
afterAll(async () => {
  await connection.end();
  await database.close();
});

const accept = (numbers: number[]) => ({
  reason: "sweep",
  spacingMs: 0,
  items: numbers.map((n) => ({ jobId: randomUUID(), workType: "holdings", accountId: `acct-${n}` })),
});

const lists: [string, object][] = [
  ["the newest", { limit: 50 }],
  [
    "older ones",
    { limit: 50, before: { createdAt: new Date(Date.now() + 60_000).toISOString(), jobId: randomUUID() } },
  ],
  ["an account's", { limit: 50, accountId: "acct-1" }],
  ["dead ones", { limit: 50, status: "dead" }],
  ["by id", { limit: 2, jobIds: [randomUUID(), randomUUID()] }],
];

test("statements that were planned while there was no job read a handful of rows when thousands are queued", async () => {
  const { seq, entries } = await readsOf(connection, "snaptrade_accept_jobs", accept([ACCOUNTS]), "auto");
  expect(seq).toEqual([]);
  expect(entries).toBeLessThan(60);
});

test.each(lists)("the list of jobs reads what it shows: %s", async (_, request) => {
  const { seq, entries } = await readsOf(connection, "snaptrade_list_jobs", request, "auto");
  expect(seq).toEqual([]);
  // Three entries a job that is shown.
  expect(entries).toBeLessThan(200);
});
