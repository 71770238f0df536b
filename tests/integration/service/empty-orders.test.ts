import { afterAll, beforeAll, expect, test } from "vitest";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { holdingsSyncedAt, storedCounts } from "@/tests/integration/service/stored-holdings";

/** I7: orders that come empty are no more believed than balances and positions. */
let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

/** A stored account whose orders come empty, and what else changes upstream; the job of an event. */
async function withoutOrders(change: Record<string, unknown> = {}) {
  const account = await driver.synced(driver.nextAccount());
  const before = await storedCounts(driver, account);
  expect(before.orders).toBeGreaterThan(0);
  await driver.simulate("PUT", `accounts/${account}`, { orders: [], ...change });
  const calls = driver.callsOf(account).length;
  const { jobId } = await driver.event("ACCOUNT_HOLDINGS_UPDATED", account);
  const made = () =>
    driver
      .callsOf(account)
      .slice(calls)
      .map(({ path }) => path.replace(`/accounts/${account}`, ""));
  return { account, jobId, before, made };
}

test("the stored orders of an unavailable account stay, and the run does not count as a whole reading", async () => {
  const sync_status = { holdings: { initial_sync_completed: true, holdings_unavailable: true } };
  const { account, jobId, before } = await withoutOrders({ sync_status });
  const syncedAt = await holdingsSyncedAt(driver, account);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(await storedCounts(driver, account)).toEqual(before);
  expect(await holdingsSyncedAt(driver, account)).toEqual(syncedAt);
});

test("those of an available one go, at the cost of one call, once", async () => {
  const { account, jobId, before, made } = await withoutOrders();
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(await storedCounts(driver, account)).toEqual({ ...before, orders: 0 });
  expect(made()).toEqual(["/balances", "/positions/all", "/orders", ""]);
  const next = await driver.event("ACCOUNT_HOLDINGS_UPDATED", account);
  expect(await driver.deliver(next.jobId)).toMatchObject({ outcome: "done" });
  expect(made()).toHaveLength(7);
});

test("where no call is left to ask they stay, and the next run has the call", async () => {
  const { account, jobId, before, made } = await withoutOrders();
  const { reserveCallsNow } = driver.service.guards;
  driver.service.guards.reserveCallsNow = async () => ({ calls: 0, slotAt: 0 });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(await storedCounts(driver, account)).toEqual(before);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  driver.service.guards.reserveCallsNow = reserveCallsNow;
  expect(made().slice(3)).toEqual(["", "/balances", "/positions/all", "/orders"]);
  expect(await storedCounts(driver, account)).toEqual({ ...before, orders: 0 });
});

test("nor are they believed while the account itself cannot be read", async () => {
  const { account, jobId, before } = await withoutOrders();
  await driver.fault({ accountId: account, path: "/accounts/{id}" }, { status: 500 });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "failed" });
  expect(await storedCounts(driver, account)).toEqual(before);
});
