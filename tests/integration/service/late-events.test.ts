import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { accountWithNews, expectNewsStored } from "@/tests/integration/service/account-with-news";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { storedVersion } from "@/tests/integration/service/stored-holdings";

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const good = { success: true };
const bad = { success: false, error: "timeout" };
const ALL_WELL = { positions: good, balances: good, orders: good };
const TWO_FAILED = { positions: good, balances: bad, orders: bad };
/** Minutes ago, as SnapTrade stamps events. */
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

/** A listing that says when SnapTrade last read the account's holdings in full. */
async function listed(account: string, holdingsLastSuccessfulSync: string): Promise<void> {
  const { userId = "", connectionId = "" } = driver.stack.snaptrade.account(account) ?? {};
  await driver.service.store.putListing({
    userId,
    readAt: new Date().toISOString(),
    connections: [],
    accounts: [
      {
        ...{ accountId: account, connectionId, institutionAccountId: null, name: null, currency: null },
        ...{ holdingsInitialSyncCompleted: true, holdingsUnavailable: false, holdingsLastSuccessfulSync },
        ...{ transactionsInitialSyncCompleted: true, transactionsLastSuccessfulSync: null },
      },
    ],
  });
}

describe("an event that SnapTrade sends again later does not undo what came meanwhile", () => {
  test("parts that had failed before an all-clear are read and stored, though nothing had failed when it came", async () => {
    const account = await driver.synced(driver.nextAccount());
    await driver.event(HOLDINGS, account, { details: ALL_WELL, eventTimestamp: ago(5) });
    await driver.event(HOLDINGS, account, { details: TWO_FAILED, eventTimestamp: ago(10) });
    driver.stack.snaptrade.bumpAccount(account, "holdings");
    const { jobId } = await driver.event("TRADE_UPDATE", account);
    expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
    expect(await storedVersion(driver, account, 2)).toEqual({ positions: true, balances: true, orders: true });
  });

  test("nor parts that had failed before the last whole sync that a listing tells of", async () => {
    const account = await driver.synced(driver.nextAccount());
    await listed(account, ago(5));
    await driver.event(HOLDINGS, account, { details: TWO_FAILED, eventTimestamp: ago(10) });
    const failedParts = driver.sql`select failed_parts from snaptrade_accounts where account_id = ${account}`;
    expect(await failedParts).toEqual([{ failed_parts: [] }]);
    await driver.event(HOLDINGS, account, { details: TWO_FAILED, eventTimestamp: ago(1) });
    expect(await driver.sql`select failed_parts from snaptrade_accounts where account_id = ${account}`).toEqual([
      { failed_parts: ["balances", "orders"] },
    ]);
  });

  test("a sync time that has not come says nothing: a failure of meanwhile is believed", async () => {
    const account = await driver.synced(driver.nextAccount());
    await listed(account, ago(-9 * 60));
    await driver.event(HOLDINGS, account, { details: TWO_FAILED });
    expect(await driver.sql`select failed_parts from snaptrade_accounts where account_id = ${account}`).toEqual([
      { failed_parts: ["balances", "orders"] },
    ]);
  });

  test("a user who was added again keeps its new secret, whenever the USER_DELETED of before comes", async () => {
    const account = await driver.synced(driver.nextAccount());
    const { userId = "" } = driver.stack.snaptrade.account(account) ?? {};
    await driver.sql`update snaptrade_users set created_at = now() - interval '90 days' where user_id = ${userId}`;
    const deletedAt = ago(20);
    await driver.app.addUsers();
    await driver.app.post({ eventType: "USER_DELETED", userId, eventTimestamp: deletedAt });
    const { jobId } = await driver.event(HOLDINGS, account);
    expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  });
});

describe("a 404 closes no account that an event of meanwhile announces", () => {
  test.each(["NEW_ACCOUNT_AVAILABLE", "CONNECTION_FIXED"])("%s", async (eventType) => {
    const { account, jobId } = await accountWithNews(driver);
    await driver.fault({ accountId: account }, { status: 404 });
    const reading = driver.hold("run:read");
    const run = driver.deliver(jobId);
    await reading.reached;
    await driver.event(eventType, account);
    reading.release();
    expect(await run).toMatchObject({ status: 200, outcome: "deferred" });

    const trailing = (await driver.jobs(account)).find(
      (job) => job.work_type === "holdings" && job.status === "queued",
    );
    expect(trailing).toMatchObject({ attempts: 0, last_error: expect.stringContaining("404") });
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId: trailing?.id });
    expect(await driver.deliverWhenDue(trailing?.id)).toMatchObject({ outcome: "done" });
    await expectNewsStored(driver, account);
  });

  test("an announcement of just before the run counts too: its own job may come too early", async () => {
    const account = await driver.synced(driver.nextAccount());
    await driver.event("NEW_ACCOUNT_AVAILABLE", account);
    const job = (await driver.jobs(account)).find(
      ({ work_type, status }) => work_type === "holdings" && status === "queued",
    );
    await driver.fault({ accountId: account }, { status: 404 });
    expect(await driver.deliver(job?.id)).toMatchObject({ outcome: "deferred" });
    expect(await driver.deliverWhenDue(job?.id)).toMatchObject({ outcome: "done" });
  });

  test("and the next 404 does", async () => {
    const { account, jobId } = await accountWithNews(driver);
    await driver.fault({ accountId: account }, { status: 404 }, 2);
    const reading = driver.hold("run:read");
    const run = driver.deliver(jobId);
    await reading.reached;
    const { jobId: trailing } = await driver.event("NEW_ACCOUNT_AVAILABLE", account, { webhookId: randomUUID() });
    reading.release();
    expect(await run).toMatchObject({ outcome: "deferred" });
    await driver.sql`update snaptrade_accounts set state_at = state_at - interval '2 minutes' where account_id = ${account}`;
    const holdings = (await driver.jobs(account)).find(
      (job) => job.work_type === "holdings" && job.status === "queued",
    );
    expect(await driver.deliverWhenDue(holdings?.id ?? trailing)).toMatchObject({ outcome: "gone" });
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "ignored" });
  });
});
