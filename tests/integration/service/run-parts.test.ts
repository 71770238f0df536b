import { afterAll, beforeAll, expect, test } from "vitest";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { holdingsSyncedAt, storedCounts, storedVersion } from "@/tests/integration/service/stored-holdings";

/** I7: no fault of a provider deletes good data. */
let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 40 });
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const good = { success: true, error: null };
const bad = { success: false, error: "timeout" };

/** A stored account whose upstream state is changed; then an event and its run. */
async function runAfter(change: Record<string, unknown>, details?: Record<string, unknown>) {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  const syncedAt = await holdingsSyncedAt(driver, account);
  expect(Math.min(before.positions, before.balances, before.orders)).toBeGreaterThan(0);
  driver.stack.snaptrade.bumpAccount(account, "holdings");
  await driver.simulate("PUT", `accounts/${account}`, change);
  const calls = driver.callsOf(account).length;
  const { jobId } = await driver.event(HOLDINGS, account, details === undefined ? {} : { details });
  const { outcome } = await driver.deliver(jobId);
  const after = await storedCounts(driver, account);
  const moved = (await holdingsSyncedAt(driver, account))?.getTime() !== syncedAt?.getTime();
  const paths = driver
    .callsOf(account)
    .slice(calls)
    .map(({ path }) => path.replace(`/accounts/${account}`, ""));
  return { account, jobId, outcome, before, after, moved, paths };
}

test("an account that is truly empty is emptied, once its own flags were read", async () => {
  const run = await runAfter({ positions: [], orders: [], balances: [] });
  expect(run.outcome).toBe("done");
  expect(run.after).toEqual({ positions: 0, balances: 0, orders: 0 });
  expect(run.moved).toBe(true);
  expect(run.paths).toEqual(["/balances", "/positions/all", "/orders", ""]);
});

test.each([
  ["are unavailable", { holdings_unavailable: true }],
  ["were never synced", { initial_sync_completed: false }],
])("empty positions of an account whose holdings %s delete nothing, and do not count as read", async (_, flags) => {
  const run = await runAfter({
    positions: [],
    orders: [],
    balances: [],
    sync_status: { holdings: { last_successful_sync: null, initial_sync_completed: true, ...flags } },
  });
  expect(run.outcome).toBe("done");
  expect(run.after).toEqual(run.before);
  expect(run.moved).toBe(false);
});

const unavailable = { holdings: { initial_sync_completed: true, holdings_unavailable: true } };

test("balances that come empty are no more believed than positions: an account in cash alone keeps them", async () => {
  const account = driver.nextAccount();
  await driver.simulate("PUT", `accounts/${account}`, { positions: [] });
  await driver.synced(account);
  const before = await storedCounts(driver, account);
  expect(before.balances).toBeGreaterThan(0);
  await driver.simulate("PUT", `accounts/${account}`, { balances: [], sync_status: unavailable });
  const { jobId } = await driver.event(HOLDINGS, account);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(await storedCounts(driver, account)).toEqual(before);
});

test("balances that come empty stay out where the run ends at the positions", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  await driver.simulate("PUT", `accounts/${account}`, { balances: [], sync_status: unavailable });
  await driver.fault({ accountId: account, path: "positions" }, { status: 402 });
  const { jobId } = await driver.event(HOLDINGS, account);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "dead" });
  expect(await storedCounts(driver, account)).toEqual(before);
});

test("empty positions are not believed while the account itself cannot be read", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  await driver.simulate("PUT", `accounts/${account}`, { positions: [] });
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.fault({ accountId: account, path: "/accounts/{id}" }, { status: 500 });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "failed" });
  expect((await storedCounts(driver, account)).positions).toBe(before.positions);
  expect(await driver.deliverWhenDue(jobId)).toMatchObject({ outcome: "done" });
  expect((await storedCounts(driver, account)).positions).toBe(0);
});

test("empty positions without the time at which the brokerage said so are no answer", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.fault({ accountId: account, path: "positions" }, { status: 200, body: { results: [] } });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "failed" });
  expect(await storedCounts(driver, account)).toEqual(before);
});

test("a part that the event reports as failed upstream is left alone; the good parts are stored; the next good event mends it", async () => {
  const old = { data_freshness: { as_of: new Date(Date.now() - 3_600_000).toISOString() } };
  const details = { total_value: good, positions: bad, balances: bad, orders: good };
  const run = await runAfter({ positions: [], balances: [], ...old }, details);
  expect(run.outcome).toBe("done");
  expect(run.after).toEqual(run.before);
  expect(run.moved).toBe(false);
  expect(await storedVersion(driver, run.account, 2)).toMatchObject({ orders: true });

  driver.stack.snaptrade.bumpAccount(run.account, "holdings");
  const all = { total_value: good, positions: good, balances: good, orders: good };
  const { jobId } = await driver.event(HOLDINGS, run.account, { details: all });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(await storedVersion(driver, run.account, 3)).toEqual({ positions: true, balances: true, orders: true });
});

/** A run that begins after parts had failed, and an event that comes while it reads and says that all is well. */
async function runClearedMeanwhile(account: string, details: Record<string, unknown>): Promise<string | undefined> {
  const { jobId } = await driver.event(HOLDINGS, account, { details });
  const reading = driver.hold("run:part");
  const run = driver.deliver(jobId);
  await reading.reached;
  const next = await driver.event(HOLDINGS, account, { details: { positions: good, balances: good, orders: good } });
  reading.release();
  expect(await run).toMatchObject({ outcome: "done" });
  return next.jobId;
}

test("a part that had failed before the run began is left to the next one, though an event of meanwhile says that all is well", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  await driver.simulate("PUT", `accounts/${account}`, { balances: [], orders: [] });
  const next = await runClearedMeanwhile(account, { positions: good, balances: bad, orders: bad });
  expect(await storedCounts(driver, account)).toEqual(before);
  expect(await driver.deliverWhenDue(next)).toMatchObject({ outcome: "done" });
  expect(await storedCounts(driver, account)).toMatchObject({ balances: 0, orders: 0 });
});

test("positions that had failed and do not say how new they are are left to the next run too", async () => {
  const account = await driver.synced(driver.nextAccount());
  driver.stack.snaptrade.bumpAccount(account, "holdings");
  await driver.simulate("PUT", `accounts/${account}`, { data_freshness: { as_of: "unknown" } });
  const next = await runClearedMeanwhile(account, { positions: bad, balances: good, orders: good });
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: true, orders: true });
  expect(await driver.deliverWhenDue(next)).toMatchObject({ outcome: "done" });
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: true, balances: true, orders: true });
});

test("an event that says nothing about parts does not make a failed part good", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  const failed = await driver.event(HOLDINGS, account, { details: { balances: bad } });
  expect(await driver.deliver(failed.jobId)).toMatchObject({ outcome: "done" });
  await driver.simulate("PUT", `accounts/${account}`, { balances: [] });
  const { jobId } = await driver.event("TRADE_DETECTION", account, { details: { orders: [] } });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(await storedCounts(driver, account)).toEqual(before);
});

test("empty positions whose confirmation has no call left are left alone; the next run has the call, and empties them", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  await driver.simulate("PUT", `accounts/${account}`, { positions: [] });
  const { jobId } = await driver.event(HOLDINGS, account);
  const { reserveCallsNow } = driver.service.guards;
  driver.service.guards.reserveCallsNow = async () => ({ calls: 0, slotAt: 0 });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(await storedCounts(driver, account)).toEqual(before);
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 0 });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  driver.service.guards.reserveCallsNow = reserveCallsNow;
  expect(await storedCounts(driver, account)).toMatchObject({ positions: 0 });
});

test("501 on orders is no failure: the run is complete, and stored orders stay", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  const syncedAt = await holdingsSyncedAt(driver, account);
  driver.stack.snaptrade.bumpAccount(account, "holdings");
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.fault({ accountId: account, path: "orders" }, { status: 501 });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "done" });
  expect(await storedCounts(driver, account)).toEqual(before);
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: true, balances: true, orders: false });
  expect((await holdingsSyncedAt(driver, account))?.getTime()).toBeGreaterThan(syncedAt?.getTime() ?? 0);
});

test("501 on anything else is a failed attempt", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.fault({ accountId: account, path: "balances" }, { status: 501 });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "failed" });
});

test("positions that are older than the stored ones are not written", async () => {
  const run = await runAfter({ data_freshness: { as_of: "2020-01-01T00:00:00.000Z" } });
  expect(run.outcome).toBe("done");
  expect(await storedVersion(driver, run.account, 2)).toEqual({ positions: false, balances: true, orders: true });
});

test("a run makes no call that the budget did not hand out (I5): a new account, and positions that came empty", async () => {
  let granted = 0;
  const { claimAccountLock, reserveCallsNow } = driver.service.guards;
  driver.service.guards.claimAccountLock = async (delivery) => {
    const admission = await claimAccountLock(delivery);
    if (admission.kind === "go") granted += admission.calls;
    return admission;
  };
  driver.service.guards.reserveCallsNow = async (...asked) => {
    const got = await reserveCallsNow(...asked);
    granted += got.calls;
    return got;
  };
  const made = async (account: string, jobId: string | undefined, retried = 0) => {
    const before = driver.callsOf(account).length;
    granted = 0;
    expect(await driver.deliver(jobId, retried)).toMatchObject({ outcome: "done" });
    return driver.callsOf(account).length - before;
  };
  const fresh = driver.nextAccount();
  // QStash's own retry has no slot of its own.
  expect(await made(fresh, (await driver.event(HOLDINGS, fresh)).jobId, 1)).toBe(4);
  expect(granted).toBeGreaterThanOrEqual(4);

  await driver.simulate("PUT", `accounts/${fresh}`, { positions: [] });
  expect(await made(fresh, (await driver.event(HOLDINGS, fresh)).jobId)).toBe(4);
  expect(granted).toBeGreaterThanOrEqual(4);
  Object.assign(driver.service.guards, { claimAccountLock, reserveCallsNow });
});
