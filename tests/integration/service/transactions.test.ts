import { afterAll, beforeAll, expect, test } from "vitest";
import type { WireObject } from "@/sandbox/snaptrade/wire";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { day, histories, UPDATED } from "@/tests/integration/service/trade-histories";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

/** The first failed attempt's delay, up to the whole second of its slot. */
const AFTER_A_FAILURE_MS = 61_000;
const { trades, upstream, stored, expectStored, stateOf, pagesRead, withTrades, holdSecondPage, failSecondPage } =
  histories(() => driver);

test("2,300 transactions come in three pages, each row once, and the watermark is the day on which the run began", async () => {
  const account = await driver.synced("acct-0003");
  const { jobId } = await driver.event(UPDATED, account);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  await expectStored(account, driver.stack.snaptrade.account(account)?.activities ?? []);
  expect(pagesRead(account)).toBe(3);
  expect(await stateOf(account)).toEqual({ watermark: day(0), cursor: null });

  // Ten new ones: one page, however long the history is.
  const all = [...trades("new", 10), ...(driver.stack.snaptrade.account(account)?.activities ?? [])];
  await upstream(account, all);
  expect(await driver.deliver((await driver.event(UPDATED, account)).jobId)).toMatchObject({ outcome: "done" });
  expect(pagesRead(account)).toBe(4);
  await expectStored(account, all);
});

test("a short budget spreads the pages over several deliveries; none is read twice, and only the last one moves the watermark", async () => {
  const all = trades("spread", 1100);
  const { account, jobId } = await withTrades(all);
  const { reserveCallsNow } = driver.service.guards;
  driver.service.guards.reserveCallsNow = async () => ({ calls: 0, slotAt: 0 });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 0, delivery: 2 });
  expect(await stored(account)).toHaveLength(1000);
  expect(await stateOf(account)).toMatchObject({ watermark: null, cursor: { endDate: day(0), pages: 1 } });
  // No call is free beyond a slot; the next delivery's own holds what is left.
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  driver.service.guards.reserveCallsNow = reserveCallsNow;
  expect(pagesRead(account)).toBe(2);
  await expectStored(account, all);
  expect(await stateOf(account)).toEqual({ watermark: day(0), cursor: null });
});

test("no page is begun late in a run: the next delivery goes on from the cursor", async () => {
  const all = trades("late", 1100);
  const { account, jobId } = await withTrades(all);
  const first = driver.hold("run:page");
  const run = driver.deliver(jobId);
  await first.reached;
  const { clock } = driver.service;
  driver.service.clock = () => clock() + 31_000;
  first.release();
  expect(await run).toMatchObject({ status: 200, outcome: "deferred" });
  driver.service.clock = clock;
  expect(await driver.jobOf(jobId)).toMatchObject({ attempts: 0, delivery: 2 });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(pagesRead(account)).toBe(2);
  await expectStored(account, all);
});

test("a run that dies between two pages is taken over from its cursor, and cannot write afterwards (I4)", async () => {
  const all = trades("crash", 1100);
  const { account, jobId } = await withTrades(all);
  const second = holdSecondPage();
  const dead = driver.deliver(jobId);
  await second.reached;
  expect(await stored(account)).toHaveLength(1000);
  expect((await stateOf(account)).watermark).toBeNull();
  await driver.sql`update snaptrade_sync_jobs set lease_until = now() - interval '1 second' where id = ${jobId}`;
  const before = pagesRead(account);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(pagesRead(account) - before).toBe(1);
  second.release();
  expect(await dead).toMatchObject({ status: 200, outcome: "overtaken" });
  await expectStored(account, all);
  expect(await stateOf(account)).toEqual({ watermark: day(0), cursor: null });
});

test("a page that fails costs an attempt and nothing else: the pages before it stand, the next attempt goes on", async () => {
  const all = trades("fault", 1100);
  const { account, jobId } = await withTrades(all);
  await failSecondPage(account, jobId);
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 1 });
  expect(await stored(account)).toHaveLength(1000);
  expect((await stateOf(account)).watermark).toBeNull();
  driver.stepRedisClock(AFTER_A_FAILURE_MS);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(pagesRead(account)).toBe(3);
  await expectStored(account, all);
});

test("I1: what an event tells of is read though it comes between two runs of one reading, above its cursor", async () => {
  const all = trades("between", 1100);
  const { account, jobId } = await withTrades(all);
  await failSecondPage(account, jobId);

  const fresh = [...trades("fresh", 2), ...all];
  await upstream(account, fresh);
  expect(await driver.event(UPDATED, account)).toMatchObject({ outcome: "coalesced", jobId });
  // No event may be answered by Redis alone now: the job has begun to read.
  expect(await driver.redis("GET", `snaptrade:account:queued:transactions:${account}`)).toBeNull();
  driver.stepRedisClock(AFTER_A_FAILURE_MS);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  await expectStored(account, fresh);
  // The rest of the old pass, and one page of another over the newest days.
  expect(pagesRead(account)).toBe(4);
  expect(await stateOf(account)).toEqual({ watermark: day(0), cursor: null });
});

test("I1: a trailing job reads the newest though it goes on with the reading of the run that it takes over", async () => {
  const all = trades("trailing", 1100);
  const { account, jobId } = await withTrades(all);
  const second = holdSecondPage();
  const dead = driver.deliver(jobId);
  await second.reached;
  const fresh = [...trades("newest", 2), ...all];
  await upstream(account, fresh);
  const trailing = await driver.event(UPDATED, account);
  expect(trailing).toMatchObject({ outcome: "accepted" });
  await driver.sql`update snaptrade_sync_jobs set lease_until = now() - interval '1 second' where id = ${jobId}`;
  await driver.sql`update snaptrade_sync_jobs set delivery = 1 where id = ${trailing.jobId ?? null}`;
  expect(await driver.deliver(trailing.jobId)).toMatchObject({ outcome: "done" });
  second.release();
  expect(await dead).toMatchObject({ outcome: "overtaken" });
  await expectStored(account, fresh);
});

test("an account that is read before SnapTrade has its history gets all of it once it is there", async () => {
  const account = driver.nextAccount();
  const status = (ready: boolean) => ({ sync_status: { transactions: { initial_sync_completed: ready } } });
  await driver.simulate("PUT", `accounts/${account}`, { activities: trades("first", 5), ...status(false) });
  await driver.event("NEW_ACCOUNT_AVAILABLE", account);
  for (const { id } of await driver.jobs(account)) expect(await driver.deliver(id)).toMatchObject({ outcome: "done" });
  expect(await stateOf(account)).toEqual({ watermark: null, cursor: null });

  const all = trades("history", 200);
  await driver.simulate("PUT", `accounts/${account}`, { activities: all, ...status(true) });
  const { jobId } = await driver.event("ACCOUNT_TRANSACTIONS_INITIAL_UPDATE", account);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  await expectStored(account, all);
  expect(await stateOf(account)).toEqual({ watermark: day(0), cursor: null });
});

test("a new account costs one call more, whichever of its two jobs runs first", async () => {
  for (const first of ["holdings", "transactions"]) {
    const account = driver.nextAccount();
    await driver.event("NEW_ACCOUNT_AVAILABLE", account);
    const jobs = await driver.jobs(account);
    jobs.sort((a, b) => Number(b.work_type === first) - Number(a.work_type === first));
    for (const { id } of jobs) expect(await driver.deliver(id)).toMatchObject({ outcome: "done" });
    expect(driver.callsOf(account), first).toHaveLength(1 + 3 + 1);
  }
});

test("rows that come or go at the top between two pages hide none of the others", async () => {
  for (const change of ["insert", "delete"] as const) {
    const all = trades(change, 1100);
    const { account, jobId } = await withTrades(all);
    const first = driver.hold("run:page");
    const run = driver.deliver(jobId);
    await first.reached;
    const now = change === "insert" ? [...trades("top", 40, { perDay: 40 }), ...all] : all.slice(40);
    await upstream(account, now);
    first.release();
    expect(await run, change).toMatchObject({ outcome: "done" });
    await expectStored(account, all);
    // The event of the change brings what came; nothing that was stored goes.
    expect(await driver.deliver((await driver.event(UPDATED, account)).jobId)).toMatchObject({ outcome: "done" });
    await expectStored(account, change === "insert" ? now : all);
  }
});

test("one date that fills more than a page is read to its end", async () => {
  const all = [
    ...trades("few", 100),
    ...trades("crowd", 1200, { perDay: 1200, from: 200 }),
    ...trades("old", 50, { from: 300 }),
  ];
  const { account, jobId } = await withTrades(all);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  await expectStored(account, all);
});

test("transactions without a date are stored too, over pages", async () => {
  const dateless = trades("dateless", 1000).map((trade) => ({ ...trade, trade_date: null }));
  const all = [...trades("dated", 50), ...dateless];
  const { account, jobId } = await withTrades(all);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  await expectStored(account, all);
});

test("a transaction that appears up to seven days late is found, and costs one page", async () => {
  const all = trades("known", 50, { perDay: 1, from: 1 });
  const { account, jobId } = await withTrades(all);
  await driver.deliver(jobId);
  await driver.sql`update snaptrade_accounts set transactions_watermark = ${day(2)} where account_id = ${account}`;
  const late = [...all, ...trades("late", 1, { from: 9 })];
  await upstream(account, late);
  expect(await driver.deliver((await driver.event(UPDATED, account)).jobId)).toMatchObject({ outcome: "done" });
  expect(pagesRead(account)).toBe(2);
  await expectStored(account, late);
});

test("ids that SnapTrade issues anew double no row, and two equal trades stay two", async () => {
  const twins: WireObject[] = trades("twin", 2, { perDay: 2 }).map((trade) => ({ ...trade, description: "equal" }));
  const all: WireObject[] = [...twins, ...trades("single", 10)];
  const { account, jobId } = await withTrades(all);
  await driver.deliver(jobId);
  await expectStored(account, all);
  const [before] =
    await driver.sql`select array_agg(id order by id) as ids from snaptrade_transactions where account_id = ${account}`;
  const anew = all.map((trade) => ({ ...trade, id: `anew-${String(trade.id)}` }));
  await upstream(account, anew);
  expect(await driver.deliver((await driver.event(UPDATED, account)).jobId)).toMatchObject({ outcome: "done" });
  await expectStored(account, anew);
  const [after] =
    await driver.sql`select array_agg(id order by id) as ids from snaptrade_transactions where account_id = ${account}`;
  expect(after).toEqual(before);
});
