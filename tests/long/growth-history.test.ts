import { afterAll, beforeAll, expect, test } from "vitest";
import type { WireObject } from "@/sandbox/snaptrade/wire";
import { type Costs, type Driver, driveService } from "@/tests/integration/service/drive-service";
import { type Reads, readsOf } from "@/tests/support/sql-reads";

/** GROWTH_HISTORY=5000 for a quick look. */
const HISTORY = Number(process.env.GROWTH_HISTORY ?? 100_000);
const PAGE = 1_000;
const A_DAY = 20;
const NEW = 10;
/** Runs that Postgres's five seconds may cut off in one reading of a history; a busy neighbour can do that to some. */
const MOST_CUT_OFF = 30;
const UPDATED = "ACCOUNT_TRANSACTIONS_UPDATED";

let driver: Driver;
/** What each commit of a page reads, while that is asked for. */
const commits: Reads[] = [];
let counting = false;

beforeAll(async () => {
  driver = await driveService({ accounts: 6 });
  const { commitTransactions } = driver.service.store;
  driver.service.store.commitTransactions = async (request) => {
    if (counting) commits.push(await readsOf(driver.sql, "snaptrade_commit_transactions", request, "auto"));
    return commitTransactions(request);
  };
});
afterAll(() => driver.app.close());

function trades(account: string, count: number): WireObject[] {
  const [like] = driver.stack.snaptrade.account("acct-0000")?.activities ?? [];
  return Array.from({ length: count }, (_, i) => {
    const day = new Date(Date.now() - (1 + Math.floor(i / A_DAY)) * 86_400_000).toISOString().slice(0, 10);
    return { ...like, id: `${account}-${i}`, description: `${account} ${i}`, trade_date: `${day}T00:00:00.000Z` };
  });
}

function pagesRead(account: string): number {
  return driver.callsOf(account).filter(({ path }) => path.endsWith("/activities")).length;
}

async function rowsOf(account: string, writtenSince = new Date(0)): Promise<number> {
  const [row] = await driver.sql<{ rows: number }[]>`
    select count(*)::int as rows from snaptrade_transactions where account_id = ${account} and updated_at >= ${writtenSince}`;
  return row?.rows ?? 0;
}

/**
 * Delivers a job until it is done: a long reading is cut into several runs, and on a machine that others keep busy a call of
 * Postgres may pass its five seconds: then the lease ends the run, as ever. Resolves how often that was: the page whose
 * commit was cut off is read again.
 */
async function runToTheEnd(jobId: string | undefined): Promise<number> {
  for (let cutOff = 0; ; ) {
    const { status, outcome } = await driver.deliver(jobId);
    if (outcome === "done") return cutOff;
    if (outcome === "postgres_away" && cutOff < MOST_CUT_OFF) {
      cutOff += 1;
      await driver.sql`update snaptrade_sync_jobs set lease_until = now() where id = ${jobId ?? null}`;
      continue;
    }
    expect({ status, outcome }).toEqual({ status: 200, outcome: "deferred" });
  }
}

/** An account that has read this many transactions, through the service itself; each page once (a day that a page cuts is read again). */
async function withHistory(count: number): Promise<string> {
  const account = await driver.synced(driver.nextAccount());
  await driver.simulate("PUT", `accounts/${account}`, { activities: trades(account, count) });
  const before = pagesRead(account);
  const cutOff = await runToTheEnd((await driver.event(UPDATED, account)).jobId);
  expect(await rowsOf(account)).toBe(count);
  expect(pagesRead(account) - before - cutOff).toBeLessThanOrEqual(Math.ceil(count / (PAGE - A_DAY)) + 1);
  return account;
}

type News = { cost: Costs; pages: number; written: number; added: number; commits: Reads[] };

/** What ten new transactions cost an account, from the event to the commit, in a run that was not cut off. */
async function tenNewOnes(account: string): Promise<News> {
  for (;;) {
    const { cutOff, ...news } = await readTenNewOnes(account);
    if (cutOff === 0) return news;
  }
}

async function readTenNewOnes(account: string): Promise<News & { cutOff: number }> {
  const rowsBefore = await rowsOf(account);
  for (let i = 0; i < NEW; i += 1) driver.stack.snaptrade.bumpAccount(account, "transactions");
  const [clock] = await driver.sql<{ now: Date }[]>`select clock_timestamp() as now`;
  const before = pagesRead(account);
  counting = true;
  const { jobId } = await driver.event(UPDATED, account);
  let cutOff = 0;
  const cost = await driver.costOf(async () => {
    cutOff = await runToTheEnd(jobId);
  });
  counting = false;
  return {
    cutOff,
    cost,
    pages: pagesRead(account) - before,
    written: await rowsOf(account, clock?.now),
    added: (await rowsOf(account)) - rowsBefore,
    commits: commits.splice(0),
  };
}

test(`ten new transactions cost an account with ${HISTORY} stored ones what they cost one with 200: a page, and ten rows`, {
  timeout: 600_000,
}, async () => {
  const short = await withHistory(200);
  const long = await withHistory(HISTORY);
  const little = await tenNewOnes(short);
  const much = await tenNewOnes(long);
  expect(much).toMatchObject({ pages: 1, written: NEW, added: NEW, cost: { redis: 3, postgres: 2, snaptrade: 1 } });
  expect({ ...much, commits: [] }).toEqual({ ...little, commits: [] });

  const [few] = little.commits;
  const [many] = much.commits;
  if (few === undefined || many === undefined) throw new Error("No page was committed");
  const figures = {
    few: { entries: few.entries, pages: few.pages },
    many: { entries: many.entries, pages: many.pages },
  };
  process.stdout.write(`\n${JSON.stringify({ history: HISTORY, ...figures })}\n\n`);
  expect(many.seq.filter(({ table }) => table === "snaptrade_transactions")).toEqual([]);
  expect(many.entries).toBeLessThan(2 * few.entries);
  expect(many.pages).toBeLessThan(2 * few.pages);
});
