import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";
import { type Move, movesOfOneKey } from "@/tests/support/sql-moves";
import { type PlanMode, readsOf } from "@/tests/support/sql-reads";

/**
 * Each move is called on tables of some 20,000 rows whose statistics are of a quiet hour: nothing was queued then, a third
 * of everything is now. Postgres's own counters of the transaction say what the statements inside the functions read.
 */
const ROWS = 20_000;
const QUEUED = 8_000;

let database: LocalDatabase;
const jobOf = new Map<string, string>();

beforeAll(async () => {
  database = await freshDatabase();
  const { sql } = database;
  await sql.unsafe(`
    alter table snaptrade_sync_jobs set (autovacuum_enabled = false);
    alter table snaptrade_webhook_events set (autovacuum_enabled = false);
    insert into snaptrade_users (user_id, secret_ciphertext, created_at, compared_at, listed_at)
      select 'user-' || i, 'c', now() - interval '2 days', now(), now() from generate_series(1, ${ROWS}) i;
    insert into snaptrade_connections (connection_id, user_id) select 'conn-' || i, 'user-' || i from generate_series(1, ${ROWS}) i;
    insert into snaptrade_accounts (account_id, user_id, connection_id, detail_read_at, holdings_attempted_at,
        transactions_attempted_at, holdings_synced_at, transactions_synced_at)
      select 'acct-' || i, 'user-' || i, 'conn-' || i, case when i % 10 > 0 then now() end, now() - interval '1 hour',
        now() - interval '1 hour', now() - interval '1 hour', now() - interval '1 hour' from generate_series(1, ${ROWS}) i;
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, created_at, finished_at)
      select 'holdings', 'acct-' || i, 'event', 'done', 1, now() - interval '1 day', now() - interval '1 day' from generate_series(1, ${ROWS}) i;
    insert into snaptrade_webhook_events (webhook_id, event_type, account_id, user_id, outcome, processed, finished_at, job_ids)
      select 'old-' || i, 'ACCOUNT_HOLDINGS_UPDATED', 'acct-' || i, 'user-' || i, 'accepted', true, now(), array[gen_random_uuid()]
      from generate_series(1, ${ROWS}) i;
    analyze`);
  await sql.unsafe(`
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, due_at, published_at)
      select 'holdings', 'acct-' || i, 'event', 'queued', 1, now(), now() from generate_series(1, ${QUEUED}) i;
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, delivery, fence, lease_until, started_at)
      select 'holdings', 'acct-' || i, 'event', 'running', 1, i, now() + interval '1 minute', now()
      from generate_series(${QUEUED + 1}, ${QUEUED + 100}) i;
    insert into snaptrade_webhook_events (webhook_id, event_type, account_id, user_id, outcome, processed, job_ids)
      select 'new-' || account_id, 'ACCOUNT_HOLDINGS_UPDATED', account_id, 'user-1', 'accepted', true, array[id]
      from snaptrade_sync_jobs where status in ('queued', 'running')`);
  await sql`insert into snaptrade_service_state (name, value) values ('sweep', '{"sweepId": "sweep"}')`;
  const jobs = await sql<{ id: string; account_id: string }[]>`
    select id, account_id from snaptrade_sync_jobs where status in ('queued', 'running')`;
  for (const { id, account_id } of jobs) jobOf.set(account_id, id);
});
afterAll(() => database.close());

const QUEUED_ONE = "acct-4001";
const RUNNING_ONE = `acct-${QUEUED + 7}`;
const IDLE_ONE = "acct-15001";
const jobIdOf = (account: string) => jobOf.get(account) ?? "";
const moves: Move[] = movesOfOneKey({
  queued: QUEUED_ONE,
  running: { account: RUNNING_ONE, fence: QUEUED + 7 },
  idle: { account: IDLE_ONE, user: "user-15001", connection: "conn-15001" },
  bare: "acct-15000",
  seenWebhook: "new-acct-4001",
  jobOf: jobIdOf,
});
moves.push([
  "releasing when nothing waits",
  "snaptrade_release_waiting",
  () => ({ limit: 100, spacingMs: 0, effects: {} }),
]);

/** Moves over many keys: their work grows with what is queued or stale, never with what is finished. */
const walks: Move[] = [
  [
    "stale keys",
    "snaptrade_list_stale",
    () => ({ sweepId: "sweep", cursor: null, limit: 200, staleMs: { holdings: 1, transactions: 1 } }),
  ],
  ["overdue jobs", "snaptrade_list_overdue", () => ({ cursor: null, limit: 500 })],
  ["the gauges", "snaptrade_read_health", () => ({})],
  ["pruning", "snaptrade_end_tick", () => ({ retentionMs: 0, limit: 100 })],
];

describe.each<PlanMode>(["force_custom_plan", "force_generic_plan"])("with %s", (plans) => {
  test.each(moves)("%s reads a handful of rows, whatever the tables hold", async (_what, name, request) => {
    const { seq, entries } = await readsOf(database.sql, name, request(), plans);
    expect(seq).toEqual([]);
    expect(entries).toBeLessThan(60);
  });

  test.each(walks)("%s: no table of jobs or events is read from end to end", async (_what, name, request) => {
    const { seq } = await readsOf(database.sql, name, request(), plans);
    expect(seq.filter(({ table }) => /jobs|events/.test(table))).toEqual([]);
  });
});

test("the events of a job are found without reading a list of those that came lately", async () => {
  const [row] = await database.sql`
    explain (analyze, buffers, format json) select id from snaptrade_webhook_events
    where finished_at is null and job_ids @> array[${jobIdOf(QUEUED_ONE)}::uuid]`;
  const plan = row?.["QUERY PLAN"][0].Plan;
  expect(JSON.stringify(plan)).toContain("snaptrade_webhook_events_open_jobs");
  expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(10);
});

describe("I3: the two slots of a key", () => {
  const insert = (status: string, account: string) => {
    const { sql } = database;
    const row = { work_type: "holdings", account_id: account, reason: "event", status };
    return sql`insert into snaptrade_sync_jobs ${sql(status === "running" ? { ...row, lease_until: new Date() } : row)}`;
  };

  test.each([
    ["queued", QUEUED_ONE, "snaptrade_sync_jobs_one_queued"],
    ["running", RUNNING_ONE, "snaptrade_sync_jobs_one_running"],
  ])("refuse a second %s job, whoever writes it", async (status, account, constraint_name) => {
    await expect(insert(status, account)).rejects.toMatchObject({ code: "23505", constraint_name });
  });

  test("let a queued job stand behind a running one, and another key's beside it", async () => {
    await insert("queued", RUNNING_ONE);
    await insert("running", QUEUED_ONE);
    await insert("queued", IDLE_ONE);
  });

  test.each([
    ["running", { lease_until: null }],
    ["queued", { lease_until: new Date() }],
    ["done", { finished_at: null }],
    ["queued", { finished_at: new Date() }],
    ["lost", {}],
  ])("know no %s job with %j", async (status, columns) => {
    const { sql } = database;
    const row = { work_type: "transactions", account_id: IDLE_ONE, reason: "event", status, ...columns };
    await expect(sql`insert into snaptrade_sync_jobs ${sql(row)}`).rejects.toMatchObject({ code: "23514" });
  });
});
