import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { empty, jobsPublished, reconcileTick, timePasses } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const DAY_MS = 86_400_000;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 4 });
});
beforeEach(async () => {
  await empty(driver);
  await driver.simulate("POST", "reset", {});
});
afterAll(() => driver.app.close());

/** The listing calls that SnapTrade saw. */
const listingCalls = () =>
  driver.stack.snaptrade
    .state()
    .calls.map(({ path }) => path)
    .filter((path) => /^\/(accounts|authorizations)$/.test(path));

/** The simulator's users, stored so long ago that the daily comparison is due. */
async function addUsers(...users: string[]): Promise<void> {
  await driver.app.addUsers();
  await timePasses(driver, DAY_MS);
  if (users.length > 0) await driver.sql`delete from snaptrade_users where not user_id = any (${users})`;
}

/** All accounts stored and up to date, the comparison of the day done. */
async function everythingSynced(): Promise<void> {
  await addUsers();
  await tickUntilListed(2);
  await driver.sql`delete from snaptrade_sync_jobs`;
  await driver.sql`
    update snaptrade_accounts set holdings_synced_at = now(), transactions_synced_at = now(),
      transactions_watermark = (now() at time zone 'UTC')::date`;
  driver.published.splice(0);
  await driver.simulate("POST", "reset", {});
}

/** The day of the last transactions that SnapTrade has of an account. */
function syncedUpstream(account: string, last_successful_sync: string): Promise<void> {
  return driver.simulate("PUT", `accounts/${account}`, { sync_status: { transactions: { last_successful_sync } } });
}

async function tickUntilListed(users: number): Promise<void> {
  for (let listed = 0; listed < users; ) {
    const tick = await reconcileTick(driver);
    if (tick.listed === 0) throw new Error("A tick listed nobody");
    listed += tick.listed;
  }
}

describe("an event that waits for its account", () => {
  test("is accepted by the tick after its user appeared, as if it came now", async () => {
    const webhookId = "early-bird";
    expect(await driver.event(HOLDINGS, "acct-0000", { webhookId })).toMatchObject({ outcome: "waiting" });
    expect(await driver.rowsOf(webhookId)).toMatchObject([
      { outcome: "waiting", processed: false, finished_at: null, job_ids: [] },
    ]);
    expect(await reconcileTick(driver)).toMatchObject({ released: 0 });

    await driver.app.addUsers();
    expect(await reconcileTick(driver)).toMatchObject({ released: 1 });
    const [row] = await driver.rowsOf(webhookId);
    expect(row).toMatchObject({ outcome: "accepted", processed: true, finished_at: null });
    expect(jobsPublished(driver)).toMatchObject([{ jobId: row?.job_ids[0], accountId: "acct-0000", delivery: 1 }]);
    expect(await driver.deliver(row?.job_ids[0])).toMatchObject({ outcome: "done" });
    expect((await driver.rowsOf(webhookId))[0]?.finished_at).not.toBeNull();
    expect(await reconcileTick(driver)).toMatchObject({ released: 0 });
  });

  test("is accepted once by ticks that overlap", async () => {
    for (const account of ["acct-0000", "acct-0001", "acct-0002"]) {
      for (let i = 0; i < 3; i += 1) await driver.event(HOLDINGS, account, { webhookId: `${account}-${i}` });
    }
    await driver.app.addUsers();
    const ticks = await Promise.all([reconcileTick(driver), reconcileTick(driver), reconcileTick(driver)]);
    // An event whose key another tick holds is left to the next one.
    ticks.push(await reconcileTick(driver));
    expect(ticks.reduce((sum, { released }) => sum + released, 0)).toBe(9);
    expect(jobsPublished(driver).filter(({ workType }) => workType === "holdings")).toHaveLength(3);
    const rows =
      await driver.sql`select outcome, count(*)::int from snaptrade_webhook_events group by outcome order by outcome`;
    expect(rows).toEqual([
      { outcome: "accepted", count: 3 },
      { outcome: "coalesced", count: 6 },
    ]);
  });

  test("makes reconcile list its user, once a day, and is accepted when the accounts are there", async () => {
    await driver.app.addUsers();
    await driver.sql`delete from snaptrade_users where user_id <> 'user-0001'`;
    const event = {
      eventType: "CONNECTION_ADDED",
      userId: "user-0001",
      brokerageAuthorizationId: "conn-0001",
      webhookId: "added",
    };
    expect(await driver.app.post(event)).toMatchObject({ outcome: "waiting" });
    expect(await reconcileTick(driver)).toMatchObject({ released: 0, listed: 1 });
    expect(listingCalls()).toEqual(["/authorizations", "/accounts"]);
    expect(await reconcileTick(driver)).toMatchObject({ released: 1, listed: 0 });
    const keys = await driver.sql`
      select j.work_type, j.account_id from snaptrade_webhook_events e, snaptrade_sync_jobs j
      where e.webhook_id = 'added' and j.id = any (e.job_ids) and j.status = 'queued' order by 2, 1`;
    expect(keys.map(({ work_type, account_id }) => `${work_type} ${account_id}`)).toEqual([
      "holdings acct-0002",
      "transactions acct-0002",
      "holdings acct-0003",
      "transactions acct-0003",
    ]);

    await driver.app.post({ ...event, brokerageAuthorizationId: "conn-unknown", webhookId: "unknown" });
    expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
    await timePasses(driver, DAY_MS + 1_000);
    await reconcileTick(driver);
    expect(listingCalls()).toHaveLength(4);
  });

  test("does not make its user be listed twice when the daily comparison is due as well", async () => {
    await addUsers("user-0001");
    await driver.app.post({
      eventType: "CONNECTION_ADDED",
      userId: "user-0001",
      brokerageAuthorizationId: "conn-0001",
    });
    expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
    expect(listingCalls()).toHaveLength(2);
  });

  test("of a user whom nobody knows costs no call", async () => {
    await driver.event(HOLDINGS, "acct-0000");
    expect(await reconcileTick(driver)).toMatchObject({ released: 0, listed: 0 });
    expect(listingCalls()).toEqual([]);
  });
});

describe("the daily comparison", () => {
  test("finds a key whose webhook was lost, and its run makes the data equal again", async () => {
    await everythingSynced();
    driver.stack.snaptrade.bumpAccount("acct-0003", "holdings");
    expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
    await timePasses(driver, DAY_MS + 1_000);
    await tickUntilListed(2);
    expect(jobsPublished(driver)).toMatchObject([{ workType: "holdings", accountId: "acct-0003", delivery: 1 }]);
    const [job] = jobsPublished(driver);
    expect(await driver.jobOf(job?.jobId)).toMatchObject({ reason: "reconcile" });
    expect(await driver.deliver(job?.jobId)).toMatchObject({ outcome: "done" });
    const [stored] = await driver.sql`
      select count(*)::int as rows from snaptrade_positions where account_id = 'acct-0003' and units::text like '2.00000000000000000%'`;
    expect(stored?.rows).toBe(1);
  });

  test("finds transactions that were stored upstream after our last reading", async () => {
    await everythingSynced();
    const tomorrow = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10);
    await syncedUpstream("acct-0002", tomorrow);
    await timePasses(driver, DAY_MS + 1_000);
    await tickUntilListed(2);
    const today = new Date().toISOString().slice(0, 10);
    await syncedUpstream("acct-0002", today);
    expect(jobsPublished(driver)).toMatchObject([{ workType: "transactions", accountId: "acct-0002" }]);
  });

  test("costs two calls a user a day, whatever it finds", async () => {
    await everythingSynced();
    await timePasses(driver, DAY_MS + 1_000);
    await tickUntilListed(2);
    for (let i = 0; i < 3; i += 1) expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
    expect(listingCalls()).toHaveLength(4);
    expect(driver.published).toEqual([]);
  });

  test("is spread over the day: one user more a tick than the day has minutes for", async () => {
    const many = Array.from({ length: 40 }, (_, i) => ({ user_id: `many-${i}`, secret_ciphertext: "broken" }));
    await driver.sql`insert into snaptrade_users ${driver.sql(many)}`;
    await addUsers();
    await reconcileTick(driver);
    const [row] = await driver.sql`select count(*)::int as compared from snaptrade_users where compared_at is not null`;
    expect(row).toEqual({ compared: 2 });
  });

  test("leaves holdings that could not be read in full to the sweep, which comes at most four times a day", async () => {
    await everythingSynced();
    for (const account of ["acct-0000", "acct-0001"]) driver.stack.snaptrade.bumpAccount(account, "holdings");
    await driver.sql`update snaptrade_accounts set holdings_retry_at = now() + interval '1 hour' where account_id = 'acct-0000'`;
    await timePasses(driver, DAY_MS + 1_000);
    await tickUntilListed(2);
    expect(jobsPublished(driver).map(({ accountId }) => accountId)).toEqual(["acct-0001"]);
  });

  test("leaves a key with an open or a dead job alone, and one that is gone", async () => {
    await everythingSynced();
    for (const account of ["acct-0000", "acct-0001", "acct-0002", "acct-0003"]) {
      driver.stack.snaptrade.bumpAccount(account, "holdings");
    }
    await driver.event(HOLDINGS, "acct-0000");
    driver.published.splice(0);
    await driver.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, reason, status, finished_at)
      values ('holdings', 'acct-0001', 'event', 'dead', now())`;
    await driver.sql`update snaptrade_accounts set removed_at = now(), state_at = now() where account_id = 'acct-0002'`;
    await driver.sql`update snaptrade_users set compared_at = null, listed_at = null`;
    await tickUntilListed(2);
    expect(jobsPublished(driver).map(({ accountId }) => accountId)).toEqual(["acct-0003"]);
  });
});
