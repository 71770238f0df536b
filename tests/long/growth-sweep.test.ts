import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sweepMessage } from "@/lib/jobs/sweep-stale";
import { deliverPage, empty, jobsPublished, pagesOf, startSweep } from "@/tests/integration/service/cron-calls";
import { type Costs, type Driver, driveService } from "@/tests/integration/service/drive-service";
import { readsOf } from "@/tests/support/sql-reads";

/** GROWTH_ACCOUNTS=5000 for a quick look. */
const MOST = Number(process.env.GROWTH_ACCOUNTS ?? 100_000);
const SIZES = [MOST / 100, MOST / 10, MOST];
/** The sweep of 100,000 fits into ten minutes: three calls an account, three quarters of the limit. */
const RATE_LIMIT = 40_000;
/** Keys that a page lists, and the entries of indexes that it may read for each: its own, its look-ups, its neighbours. */
const PAGE = 200;
const ENTRIES_A_KEY = 20;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 2, rateLimitPerMinute: RATE_LIMIT });
});
afterAll(async () => {
  process.stdout.write(`\n${sweeps.map((sweep) => JSON.stringify(sweep)).join("\n")}\n\n`);
  await driver.app.close();
});

type Sweep = { accounts: number; pages: number; heapMb: number; seconds: number } & Record<
  "redis" | "postgres" | "qstash" | "entriesAPage" | "entriesOfTheLast",
  number
>;
const sweeps: Sweep[] = [];

/** Accounts whose holdings are two days old, by numbers; two a user and connection. Transactions are fresh. */
async function addStale(count: number): Promise<void> {
  await driver.sql.unsafe(`
    insert into snaptrade_users (user_id) select 'user-' || i from generate_series(0, ${count / 2}) i;
    insert into snaptrade_connections (connection_id, user_id) select 'conn-' || i, 'user-' || i from generate_series(0, ${count / 2}) i;
    insert into snaptrade_accounts (account_id, user_id, connection_id, detail_read_at, holdings_attempted_at, holdings_synced_at,
        transactions_attempted_at, transactions_synced_at)
      select 'acct-' || i, 'user-' || i / 2, 'conn-' || i / 2, now(), at, at, now(), now()
      from generate_series(0, ${count - 1}) i, lateral (select now() - interval '2 days' + i * interval '1 millisecond' as at) spread;
    analyze snaptrade_users, snaptrade_connections, snaptrade_accounts`);
}

/** What the page that comes next reads to find its keys. */
async function entriesOfNextPage(accounts: number): Promise<number> {
  const { sweepId, cursor } = sweepMessage.parse(pagesOf(driver).at(-1)?.body);
  const request = { sweepId, cursor, limit: PAGE, staleMs: driver.service.env.limits.staleAfterMs };
  const { seq, entries } = await readsOf(driver.sql, "snaptrade_list_stale", request, "auto");
  // A table of a few pages is read from end to end with good reason.
  if (accounts >= 1_000) expect(seq.filter(({ table }) => table !== "snaptrade_service_state")).toEqual([]);
  return entries;
}

/** Rows of the table of jobs that were ever read without an index, by connections that have reported. */
async function jobsReadEndToEnd(): Promise<number> {
  const [row] = await driver.sql<{ rows: number }[]>`
    select seq_tup_read::int as rows from pg_stat_user_tables where relname = 'snaptrade_sync_jobs'`;
  return row?.rows ?? 0;
}

function heapMb(): number {
  setFlagsFromString("--expose_gc");
  runInNewContext("gc")();
  return Math.round(process.memoryUsage().heapUsed / 2 ** 20);
}

/** A sweep from its cron call to the page that finds nothing more; Redis's clock goes on as far as QStash would wait. */
async function sweepAll(accounts: number): Promise<Sweep> {
  await empty(driver);
  await addStale(accounts);
  const times = new Uint8Array(accounts);
  const startedAt = performance.now();
  const sum: Costs = { redis: 0, postgres: 0, qstash: 0, snaptrade: 0 };
  const add = (cost: Costs) => {
    sum.redis += cost.redis;
    sum.postgres += cost.postgres;
    sum.qstash += cost.qstash;
  };
  add(await driver.costOf(async () => expect(await startSweep(driver)).toBe("started")));
  let entriesAPage = 0;
  let outcome: string | undefined;
  let pages = 0;
  let entriesOfTheLast = 0;
  for (; outcome !== "finished"; pages += 1) {
    driver.stepRedisClock(pagesOf(driver).at(-1)?.delayMs ?? 0);
    const scheduled = times.reduce((all, n) => all + n, 0);
    if (scheduled === accounts) entriesOfTheLast = await entriesOfNextPage(accounts);
    else if (pages % 50 === 0 && accounts - scheduled >= PAGE) {
      entriesAPage = Math.max(entriesAPage, await entriesOfNextPage(accounts));
    }
    const cost = await driver.costOf(async () => {
      outcome = await deliverPage(driver);
    });
    // A page is a handful of requests, however many stand behind it: far inside its 60 s.
    expect(cost.redis).toBeLessThanOrEqual(2);
    expect(cost.postgres).toBeLessThanOrEqual(2);
    expect(cost.qstash).toBeLessThanOrEqual(3);
    add(cost);
    const jobs = jobsPublished(driver);
    expect(jobs.length).toBeLessThanOrEqual(PAGE);
    for (const { accountId } of jobs) {
      const number = Number(accountId.slice("acct-".length));
      times[number] = (times[number] ?? 0) + 1;
    }
    // What this harness keeps of a page is not the service's.
    driver.published.splice(0, driver.published.length - 1);
    driver.app.log.splice(0);
  }
  expect(
    times.every((n) => n === 1),
    "every account is scheduled once",
  ).toBe(true);
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  const { redis, postgres, qstash } = sum;
  return { accounts, pages, redis, postgres, qstash, entriesAPage, entriesOfTheLast, heapMb: 0, seconds };
}

test.each(SIZES)(
  "a sweep of %i stale accounts schedules each once, in pages of equal work",
  {
    timeout: 600_000,
  },
  async (accounts) => {
    const before = { ...driver.stack.qstash.state(), readToTheEnd: await jobsReadEndToEnd() };
    const sweep = await sweepAll(accounts);
    sweeps.push(sweep);
    // The statements were planned while there was no job: what they read must not grow with the jobs.
    expect((await jobsReadEndToEnd()) - before.readToTheEnd).toBeLessThan(accounts);
    const [jobs] = await driver.sql`
    select count(*)::int as jobs, count(distinct account_id)::int as accounts, max(delivery) as delivery
    from snaptrade_sync_jobs where status = 'queued' and work_type = 'holdings' and reason = 'sweep'`;
    expect(jobs).toEqual({ jobs: accounts, accounts, delivery: 1 });
    const { published, deduplicated } = driver.stack.qstash.state();
    expect(published - before.published).toBe(accounts + sweep.pages);
    expect(deduplicated).toBe(before.deduplicated);
    // The emulator remembers each message and is in this process.
    const { current } = driver.stack.qstash.faults;
    driver.stack.qstash.reset();
    driver.stack.qstash.faults.set(current);
    sweep.heapMb = heapMb();
    expect(sweep.entriesAPage).toBeLessThan(PAGE * ENTRIES_A_KEY);
    // The last page looks once at each account whose transactions are fresh.
    expect(sweep.entriesOfTheLast).toBeLessThan(accounts + PAGE);
  },
);

test("round trips an account are constant or fall from the smallest to the largest sweep, and memory is flat", () => {
  const [small, middle, large] = sweeps;
  if (small === undefined || middle === undefined || large === undefined) throw new Error("A sweep is missing");
  const trips = ({ redis, postgres, qstash, accounts }: Sweep) => (redis + postgres + qstash) / accounts;
  expect(trips(middle)).toBeLessThanOrEqual(trips(small));
  expect(trips(large)).toBeLessThanOrEqual(trips(middle));
  expect(large.heapMb).toBeLessThan(middle.heapMb * 1.3);
});
