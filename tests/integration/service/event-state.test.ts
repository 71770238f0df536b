import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reconcileTick } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
/** Minutes ago, as SnapTrade stamps events. */
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString().replace("Z", "123+00:00");

/** Two accounts of one connection, both stored. */
async function connectionOfTwo(): Promise<{ first: string; second: string; connection: string; user: string }> {
  const connectionOf = (account: string) => driver.stack.snaptrade.account(account)?.connectionId;
  let [first, second] = [driver.nextAccount(), driver.nextAccount()];
  while (connectionOf(first) !== connectionOf(second)) [first, second] = [second, driver.nextAccount()];
  await driver.synced(first);
  await driver.synced(second);
  const { connectionId = "", userId = "" } = driver.stack.snaptrade.account(first) ?? {};
  return { first, second, connection: connectionId, user: userId };
}

async function isDisabled(connection: string): Promise<boolean> {
  const [row] = await driver.sql`select disabled from snaptrade_connections where connection_id = ${connection}`;
  return row?.disabled;
}

async function isRemoved(account: string): Promise<boolean> {
  const [row] = await driver.sql`select removed_at from snaptrade_accounts where account_id = ${account}`;
  return row?.removed_at !== null;
}

test.each(["CONNECTION_ADDED", "CONNECTION_FIXED"])(
  "%s queues both works for every account of its connection",
  async (eventType) => {
    const { first, second, connection, user } = await connectionOfTwo();
    const webhookId = randomUUID();
    expect(
      await driver.app.post({ eventType, webhookId, brokerageAuthorizationId: connection, userId: user }),
    ).toMatchObject({ outcome: "accepted" });
    const [row] = await driver.rowsOf(webhookId);
    expect(row?.job_ids).toHaveLength(4);
    for (const account of [first, second]) {
      const queued = (await driver.jobs(account)).filter(({ status }) => status === "queued");
      expect(queued.map((job) => [job.work_type, job.delivery]).sort()).toEqual([
        ["holdings", 1],
        ["transactions", 1],
      ]);
    }
  },
);

test("an older event never undoes a newer one, whatever the order of arrival", async () => {
  const { first, connection, user } = await connectionOfTwo();
  const ids = { brokerageAuthorizationId: connection, userId: user };
  const connectionEvent = (eventType: string, minutes: number) =>
    driver.app.post({ eventType, eventTimestamp: ago(minutes), ...ids });
  await connectionEvent("CONNECTION_BROKEN", 30);
  expect(await isDisabled(connection)).toBe(true);
  await connectionEvent("CONNECTION_FIXED", 20);
  await connectionEvent("CONNECTION_BROKEN", 25);
  await connectionEvent("CONNECTION_DELETED", 25);
  expect(await isDisabled(connection)).toBe(false);
  await connectionEvent("CONNECTION_BROKEN", 10);
  await connectionEvent("CONNECTION_FIXED", 15);
  expect(await isDisabled(connection)).toBe(true);

  await driver.event("ACCOUNT_REMOVED", first, { eventTimestamp: ago(8) });
  await driver.event("NEW_ACCOUNT_AVAILABLE", first, { eventTimestamp: ago(9) });
  expect(await isRemoved(first)).toBe(true);
  await driver.event("NEW_ACCOUNT_AVAILABLE", first, { eventTimestamp: ago(5) });
  await driver.event("ACCOUNT_REMOVED", first, { eventTimestamp: ago(7) });
  expect(await isRemoved(first)).toBe(false);
});

test("of two events of one instant, the one that keeps the data flowing wins", async () => {
  const { connection, user } = await connectionOfTwo();
  const ids = { brokerageAuthorizationId: connection, userId: user, eventTimestamp: ago(3) };
  for (const order of [
    ["CONNECTION_BROKEN", "CONNECTION_FIXED"],
    ["CONNECTION_FIXED", "CONNECTION_BROKEN"],
  ]) {
    for (const eventType of order) await driver.app.post({ eventType, ...ids });
    expect(await isDisabled(connection), order.join(", ")).toBe(false);
  }
});

test("an event of a removed account is ignored: recorded, nothing queued, and the account stays removed", async () => {
  const account = await driver.synced(driver.nextAccount());
  await driver.event("ACCOUNT_REMOVED", account, { eventTimestamp: ago(2) });
  const jobs = await driver.jobs(account);
  for (const eventTimestamp of [ago(5), ago(1)]) {
    const webhookId = randomUUID();
    expect(await driver.event(HOLDINGS, account, { webhookId, eventTimestamp })).toMatchObject({
      status: 200,
      outcome: "ignored",
    });
    expect(await driver.rowsOf(webhookId)).toMatchObject([
      { outcome: "ignored", processed: false, job_ids: [], finished_at: expect.any(Date) },
    ]);
  }
  expect(await driver.jobs(account)).toEqual(jobs);
  expect(await isRemoved(account)).toBe(true);
});

test("USER_DELETED ends the user: the secret is gone, later events are ignored, what is queued closes without a call", async () => {
  const { first, second, user } = await connectionOfTwo();
  const { jobId } = await driver.event(HOLDINGS, first);
  const calls = driver.callsOf(first).length;
  expect(await driver.app.post({ eventType: "USER_DELETED", userId: user })).toMatchObject({ outcome: "accepted" });
  const [row] = await driver.sql`select secret_ciphertext, deleted_at from snaptrade_users where user_id = ${user}`;
  expect(row).toMatchObject({ secret_ciphertext: null, deleted_at: expect.any(Date) });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "gone" });
  expect(await driver.event(HOLDINGS, second)).toMatchObject({ outcome: "ignored" });
  expect(driver.callsOf(first)).toHaveLength(calls);
});

test("a job of a disabled connection closes without a call, and CONNECTION_FIXED reads again", async () => {
  const { first, connection, user } = await connectionOfTwo();
  const ids = { brokerageAuthorizationId: connection, userId: user };
  await driver.app.post({ eventType: "CONNECTION_BROKEN", ...ids, eventTimestamp: ago(1) });
  const { jobId } = await driver.event(HOLDINGS, first);
  const calls = driver.callsOf(first).length;
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "gone" });
  expect(driver.callsOf(first)).toHaveLength(calls);
  await driver.app.post({ eventType: "CONNECTION_FIXED", ...ids });
  const again = (await driver.jobs(first)).find((job) => job.status === "queued" && job.work_type === "holdings");
  expect(await driver.deliver(again?.id)).toMatchObject({ outcome: "done" });
});

// B16
test("events without an account are each taken for themselves, and no key is made of an id that is not there", async () => {
  const { connection, user } = await connectionOfTwo();
  await driver.stack.redis.flush();
  const ids = { userId: user, brokerageAuthorizationId: connection };
  const events = [
    { eventType: "CONNECTION_BROKEN", ...ids },
    { eventType: "CONNECTION_UPDATED", ...ids },
    { eventType: "CONNECTION_FAILED", userId: user },
    { eventType: "CONNECTION_FAILED", webhookId: undefined },
    { eventType: "CONNECTION_BROKEN", schemaVersion: "oauth_v1", connectionId: connection },
  ];
  for (const event of events) expect(await driver.app.post(event)).toMatchObject({ status: 200, outcome: "accepted" });
  expect(await driver.app.post({ eventType: "CONNECTION_BROKEN" })).toMatchObject({ outcome: "unroutable" });
  await driver.app.settled();
  const keys = [await driver.redis("KEYS", "*")].flat().map(String);
  expect(keys.filter((key) => /undefined|null|:$|:account:/.test(key))).toEqual([]);
  expect(keys.filter((key) => key.startsWith("snaptrade:webhook:"))).toHaveLength(events.length + 1);
});

test("an account event whose user or connection differs from our rows is routed by the account alone, and logged", async () => {
  const account = await driver.synced(driver.nextAccount());
  const answer = await driver.event(HOLDINGS, account, { userId: "user-0014", brokerageAuthorizationId: "conn-0014" });
  expect(answer).toMatchObject({ outcome: "accepted" });
  const [row] = await driver.sql`select user_id, connection_id from snaptrade_accounts where account_id = ${account}`;
  const { userId, connectionId } = driver.stack.snaptrade.account(account) ?? {};
  expect(row).toEqual({ user_id: userId, connection_id: connectionId });
  expect(driver.app.log.filter((line) => String(line.msg).includes("differs from our rows"))).toHaveLength(1);
});

test("a connection whose accounts are unknown waits, and is read once they are known", async () => {
  const webhookId = randomUUID();
  const ids = { userId: "user-0014", brokerageAuthorizationId: "conn-new" };
  expect(await driver.app.post({ eventType: "CONNECTION_ADDED", webhookId, ...ids })).toMatchObject({
    outcome: "waiting",
  });
  expect(await driver.app.post({ eventType: HOLDINGS, accountId: "acct-new", ...ids })).toMatchObject({
    outcome: "accepted",
  });
  expect(await reconcileTick(driver)).toMatchObject({ released: 1 });
  expect(await driver.rowsOf(webhookId)).toMatchObject([{ outcome: "accepted", processed: true }]);
  expect((await driver.jobs("acct-new")).map(({ work_type }) => work_type).sort()).toEqual([
    "holdings",
    "transactions",
  ]);
});
