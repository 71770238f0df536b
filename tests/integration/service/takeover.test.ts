import { afterAll, beforeAll, expect, test } from "vitest";
import { accountWithNews } from "@/tests/integration/service/account-with-news";
import { reconcileTick } from "@/tests/integration/service/cron-calls";
import { type DeliveryAnswer, type Driver, driveService } from "@/tests/integration/service/drive-service";
import { storedVersion } from "@/tests/integration/service/stored-holdings";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ env: { SNAPTRADE_JOB_MAX_ATTEMPTS: "3" } });
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const whole = { positions: true, balances: true, orders: true };

/** A run that has read version 2 of its account and not committed it: `finish` lets it go on. */
async function runThatHasRead(): Promise<{ account: string; jobId: string; finish: () => Promise<DeliveryAnswer> }> {
  const { account, jobId } = await accountWithNews(driver);
  const read = driver.hold("run:read");
  const answer = driver.deliver(jobId);
  await read.reached;
  return {
    account,
    jobId,
    finish: () => {
      read.release();
      return answer;
    },
  };
}

async function endLease(jobId: string): Promise<void> {
  await driver.sql`update snaptrade_sync_jobs set lease_until = now() - interval '1 second' where id = ${jobId}`;
}

test("while the lease is live, a redelivery finds the account active and reads nothing", async () => {
  const { account, jobId, finish } = await runThatHasRead();
  const calls = driver.callsOf(account).length;
  const job = await driver.jobOf(jobId);
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "already_active" });
  await driver.stack.redis.flush();
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "already_active" });
  expect(driver.callsOf(account)).toHaveLength(calls);
  expect(await driver.jobOf(jobId)).toEqual(job);
  expect(driver.logged("already active for account").filter((line) => line.jobId === jobId)).toHaveLength(2);
  expect(await finish()).toMatchObject({ outcome: "done" });
  expect(await storedVersion(driver, account, 2)).toEqual(whole);
});

test("two deliveries of one message at once are one run", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  const calls = driver.callsOf(account).length;
  const answers = await Promise.all(Array.from({ length: 8 }, () => driver.deliver(jobId)));
  const outcomes = answers.map(({ outcome }) => outcome);
  expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === "already_active" || outcome === "overtaken")).toHaveLength(7);
  expect(driver.callsOf(account)).toHaveLength(calls + 3);
});

test("past the lease a redelivery takes over with a higher fence, and the run that was overtaken writes nothing (I4)", async () => {
  const { account, jobId, finish } = await runThatHasRead();
  const first = await driver.jobOf(jobId);
  await endLease(jobId);
  driver.stack.snaptrade.bumpAccount(account, "holdings");
  const reading = driver.hold("run:read");
  const takeover = driver.deliver(jobId);
  await reading.reached;
  const second = await driver.jobOf(jobId);
  expect(Number(second.fence)).toBeGreaterThan(Number(first.fence));

  expect(await finish()).toMatchObject({ status: 200, outcome: "overtaken" });
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: false, orders: false });
  expect(await driver.jobOf(jobId)).toEqual(second);
  reading.release();
  expect(await takeover).toMatchObject({ status: 200, outcome: "done" });
  expect(await storedVersion(driver, account, 3)).toEqual(whole);
});

test("an overtaken run that fails, is throttled or finds its account gone changes nothing either", async () => {
  for (const status of [500, 429, 404, 402]) {
    const account = await driver.synced(driver.nextAccount());
    const { jobId = "" } = await driver.event(HOLDINGS, account);
    const headers = { "X-RateLimit-Account-Remaining": "0", "X-RateLimit-Account-Reset": "1" };
    await driver.fault({ accountId: account, path: "positions" }, { status, ...(status === 429 ? { headers } : {}) });
    const read = driver.hold("run:read");
    const overtaken = driver.deliver(jobId);
    await read.reached;
    await endLease(jobId);
    driver.stepRedisClock(2000);
    expect(await driver.deliver(jobId), String(status)).toMatchObject({ outcome: "done" });
    const job = await driver.jobOf(jobId);
    read.release();
    expect(await overtaken, String(status)).toMatchObject({ status: 200, outcome: "overtaken" });
    expect(await driver.jobOf(jobId)).toEqual(job);
    const [row] = await driver.sql`select removed_at from snaptrade_accounts where account_id = ${account}`;
    expect(row?.removed_at).toBeNull();
  }
});

test("the trailing job takes over a run past its lease: one job goes on, with the attempts and the events of both", async () => {
  const { account, jobId, finish } = await runThatHasRead();
  const { jobId: trailing = "" } = await driver.event(HOLDINGS, account);
  await driver.sql`update snaptrade_sync_jobs set delivery = 1 where id = ${trailing}`;
  expect(await driver.deliver(trailing)).toMatchObject({ outcome: "already_active" });
  await endLease(jobId);
  const read = driver.hold("run:read");
  const takeover = driver.deliver(trailing);
  await read.reached;
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "superseded" });
  expect(await driver.jobOf(trailing)).toMatchObject({ status: "running", attempts: 2 });
  const open = await driver.sql`select webhook_id from snaptrade_webhook_events
    where job_ids = array[${trailing}]::uuid[] and finished_at is null`;
  expect(open).toHaveLength(2);

  expect(await finish()).toMatchObject({ outcome: "overtaken" });
  read.release();
  expect(await takeover).toMatchObject({ outcome: "done" });
  expect(
    await driver.sql`select webhook_id from snaptrade_webhook_events
    where job_ids = array[${trailing}]::uuid[] and finished_at is null`,
  ).toHaveLength(0);
});

test("a run that died is taken back by reconcile after its lease and published in the same tick (I8)", async () => {
  const { account, jobId, finish } = await runThatHasRead();
  await reconcileTick(driver);
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "running" });
  await endLease(jobId);
  await reconcileTick(driver);
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 1, delivery: 2 });
  expect(driver.published.at(-1)?.dedupe).toBe(`${jobId}-2`);
  // Its lock still stands in Redis: Postgres has the last word.
  expect(await driver.redis("GET", `snaptrade:account:lock:holdings:${account}`)).not.toBeNull();
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(await finish()).toMatchObject({ outcome: "overtaken" });
  expect(await driver.redis("GET", `snaptrade:account:lock:holdings:${account}`)).toBeNull();
});

test("a run that died with a trailing job behind it: reconcile makes one job of both and publishes that", async () => {
  const { account, jobId, finish } = await runThatHasRead();
  const { jobId: trailing = "" } = await driver.event(HOLDINGS, account);
  await endLease(jobId);
  await reconcileTick(driver);
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "superseded" });
  expect(await driver.jobOf(trailing)).toMatchObject({ status: "queued", attempts: 1, delivery: 1 });
  expect(driver.published.at(-1)?.dedupe).toBe(`${trailing}-1`);
  expect(await driver.deliver(trailing)).toMatchObject({ outcome: "done" });
  expect(await finish()).toMatchObject({ outcome: "overtaken" });
});

test("a lease that ends at the last attempt makes the job dead, with one alert", async () => {
  const { jobId, finish } = await runThatHasRead();
  await driver.sql`update snaptrade_sync_jobs set attempts = 3 where id = ${jobId}`;
  await endLease(jobId);
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "dead" });
  expect(driver.app.log.filter((line) => line.alert === "job_dead" && line.jobId === jobId)).toHaveLength(1);
  expect(await finish()).toMatchObject({ outcome: "overtaken" });
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "dead" });
});

test("an account that is removed while it is read is not written, and its trailing job closes too", async () => {
  const { account, jobId, finish } = await runThatHasRead();
  const trailing = await driver.event(HOLDINGS, account);
  await driver.event("ACCOUNT_REMOVED", account);
  const published = driver.published.length;
  expect(await finish()).toMatchObject({ status: 200, outcome: "gone" });
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: false, orders: false });
  for (const id of [jobId, trailing.jobId]) expect(await driver.jobOf(id)).toMatchObject({ status: "gone" });
  expect(driver.published).toHaveLength(published);
});

// B101
test("an account whose rows are deleted under its job is not made again, neither before nor in the middle of a run", async () => {
  for (const point of ["run:admitted", "run:read"] as const) {
    const account = await driver.synced(driver.nextAccount());
    const { jobId } = await driver.event(HOLDINGS, account);
    const reached = driver.hold(point);
    const run = driver.deliver(jobId);
    await reached.reached;
    for (const table of ["sync_jobs", "positions", "balances", "orders", "accounts"]) {
      await driver.sql`delete from ${driver.sql(`snaptrade_${table}`)} where account_id = ${account}`;
    }
    reached.release();
    expect(await run, point).toMatchObject({ status: 200, outcome: "overtaken" });
    expect(await driver.sql`select from snaptrade_accounts where account_id = ${account}`).toHaveLength(0);
    const keys = [`snaptrade:account:lock:holdings:${account}`, `snaptrade:account:queued:holdings:${account}`];
    expect(await driver.redis("GET", keys[0] ?? "")).toBeNull();
  }
});

test.each([500, 429])("nor is it written where its run ends with a %i: the good parts stay out too", async (status) => {
  const { account, jobId } = await accountWithNews(driver);
  const headers = { "X-RateLimit-Account-Remaining": "0", "X-RateLimit-Account-Reset": "1" };
  await driver.fault({ accountId: account, path: "orders" }, { status, ...(status === 429 ? { headers } : {}) });
  const read = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await read.reached;
  await driver.event("ACCOUNT_REMOVED", account);
  read.release();
  expect((await run).status).toBe(200);
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: false, orders: false });
  if ((await driver.jobOf(jobId)).status === "queued") await driver.deliverWhenDue(jobId);
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "gone" });
});
