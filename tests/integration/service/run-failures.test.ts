import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accountWithNews } from "@/tests/integration/service/account-with-news";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { holdingsSyncedAt, storedCounts, storedVersion } from "@/tests/integration/service/stored-holdings";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 40, env: { SNAPTRADE_JOB_MAX_ATTEMPTS: "3" } });
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const MINUTE = 60_000;

/** How long after its failure a job may run again. */
async function delayOf(jobId: string): Promise<number> {
  const { due_at, failed_at } = await driver.jobOf(jobId);
  return due_at.getTime() - (failed_at?.getTime() ?? 0);
}

const alerts = (alert: string) => driver.app.log.filter((line) => line.alert === alert);

const page = "<html><body>502 Bad Gateway</body></html>";
test.each([
  ["500", { status: 500 }],
  ["425", { status: 425 }],
  ["502 with a page", { status: 502, body: page }],
  ["503 of another code", { status: 503, body: { detail: "down", code: "9999" } }],
  ["a page with 200", { status: 200, body: page }],
  ["a page with 404", { status: 404, body: page }],
  ["JSON cut off", { status: 200, body: '[{"currency":{"code":"USD"},"cash":1' }],
  ["an object for a list", { status: 200, body: { detail: "try later" } }],
  ["an element of another shape", { status: 200, body: [{ currency: null, cash: {} }] }],
  ["half an answer", { drop: "half" }],
  ["no answer", { drop: true }],
])(
  "balances fail with %s: a failed attempt; the good parts are stored, the bad one stays as it was",
  async (_, respond) => {
    const { account, jobId } = await accountWithNews(driver);
    const syncedAt = await holdingsSyncedAt(driver, account);
    await driver.fault({ accountId: account, path: "balances" }, respond);
    expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "failed" });
    const job = await driver.jobOf(jobId);
    expect(job).toMatchObject({ status: "queued", attempts: 1, delivery: 2 });
    expect(job.last_error).toMatch(/^balances: /);
    expect(await storedVersion(driver, account, 2)).toEqual({ positions: true, balances: false, orders: true });
    expect(await storedVersion(driver, account, 1)).toEqual({ positions: false, balances: false, orders: false });
    expect(await holdingsSyncedAt(driver, account)).toEqual(syncedAt);
    const [rows] = await driver.sql`select count(*)::int as n from snaptrade_balances where account_id = ${account}`;
    expect(rows?.n).toBeGreaterThan(0);

    expect(await driver.deliverWhenDue(jobId)).toMatchObject({ outcome: "done" });
    expect(await storedVersion(driver, account, 2)).toEqual({ positions: true, balances: true, orders: true });
    expect((await holdingsSyncedAt(driver, account))?.getTime()).toBeGreaterThan(syncedAt?.getTime() ?? 0);
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "done", last_error: null });
  },
);

test("a provider that hangs is left at the run's own deadline: a failed attempt, and nothing is stored of what did not come", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const { deadline } = driver.service;
  driver.service.deadline = () => AbortSignal.timeout(300);
  await driver.fault({ accountId: account, path: "balances" }, { delayMs: 20_000 });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "failed" });
  driver.service.deadline = deadline;
  expect((await driver.jobOf(jobId)).last_error).toContain("deadline");
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: false, orders: false });
  expect(await driver.deliverWhenDue(jobId)).toMatchObject({ outcome: "done" });
});

// B39
test("a run's time counts from before its first call: one that is late to begin reads nothing", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const { deadline } = driver.service;
  const time = new AbortController();
  const asked: number[] = [];
  driver.service.deadline = () => {
    asked.push(driver.costs().redis);
    return time.signal;
  };
  const [before, calls] = [driver.costs().redis, driver.callsOf(account).length];
  const begun = driver.hold("run:begun");
  const run = driver.deliver(jobId);
  await begun.reached;
  time.abort();
  begun.release();
  expect(await run).toMatchObject({ status: 200, outcome: "failed" });
  driver.service.deadline = deadline;
  expect(asked).toEqual([before]);
  expect(driver.callsOf(account)).toHaveLength(calls);
});

test("failed attempts come again later and later; at the limit the job is dead, visible, with one alert, and its key is free", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const webhookId = randomUUID();
  await driver.event(HOLDINGS, account, { webhookId });
  await driver.app.settled();
  await driver.fault({ accountId: account, path: "positions" }, { status: 500 }, 3);
  for (const [attempts, delay] of [
    [1, 1 * MINUTE],
    [2, 2 * MINUTE],
  ]) {
    expect(await driver.deliverWhenDue(jobId)).toMatchObject({ status: 200, outcome: "failed" });
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts });
    expect(await delayOf(jobId)).toBeGreaterThanOrEqual((delay ?? 0) - 50);
    expect(await delayOf(jobId)).toBeLessThan((delay ?? 0) + 1000);
    expect(driver.published.at(-1)?.delayMs).toBeGreaterThan((delay ?? 0) / 2);
  }
  expect(await driver.deliverWhenDue(jobId)).toMatchObject({ status: 200, outcome: "dead" });
  const job = await driver.jobOf(jobId);
  expect(job).toMatchObject({ status: "dead", attempts: 3 });
  expect(job.last_error).toContain("500");
  expect(alerts("job_dead").filter((line) => line.jobId === jobId)).toHaveLength(1);
  expect((await driver.rowsOf(webhookId))[0]).toMatchObject({ finished_at: expect.any(Date) });

  const next = await driver.event(HOLDINGS, account);
  expect(next).toMatchObject({ outcome: "accepted" });
  expect(await driver.deliver(next.jobId)).toMatchObject({ outcome: "done" });
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "superseded" });
});

test("a job that dies hands over to the trailing job, which is published at once", async () => {
  const { account, jobId } = await accountWithNews(driver);
  await driver.fault({ accountId: account }, { status: 402 });
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  const trailing = await driver.event(HOLDINGS, account);
  expect(trailing).toMatchObject({ outcome: "accepted" });
  reading.release();
  expect(await run).toMatchObject({ outcome: "dead" });
  expect(driver.published.at(-1)?.dedupe).toBe(`${trailing.jobId}-1`);
  expect(await driver.deliver(trailing.jobId)).toMatchObject({ outcome: "done" });
});

test("a failed attempt with a trailing job behind it becomes one job: attempts, delay and events go over", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const [event] =
    await driver.sql`select webhook_id from snaptrade_webhook_events where job_ids @> array[${jobId}]::uuid[]`;
  await driver.fault({ accountId: account }, { status: 500 }, 3);
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  const { jobId: trailing = "" } = await driver.event(HOLDINGS, account);
  reading.release();
  expect(await run).toMatchObject({ status: 200, outcome: "failed" });
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "superseded" });
  expect(await driver.jobOf(trailing)).toMatchObject({ status: "queued", attempts: 1, delivery: 1 });
  expect(await delayOf(trailing)).toBeGreaterThan(59_000);
  expect(driver.published.at(-1)?.dedupe).toBe(`${trailing}-1`);
  expect(await driver.rowsOf(event?.webhook_id)).toMatchObject([{ job_ids: [trailing], finished_at: null }]);
});

test.each([402, 410])("%i: no retry can help; dead at once, with the reason and one alert", async (status) => {
  const { account, jobId } = await accountWithNews(driver);
  await driver.fault({ accountId: account }, { status });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "dead" });
  const job = await driver.jobOf(jobId);
  expect(job).toMatchObject({ status: "dead", attempts: 1 });
  expect(job.last_error).toContain(String(status));
  expect(alerts("job_dead").filter((line) => line.jobId === jobId)).toHaveLength(1);
});

// B93
test("an endpoint that is retired is no empty account: what is stored stays, and job and alert name what was asked", async () => {
  const { account, jobId } = await accountWithNews(driver);
  await driver.fault(
    { accountId: account, path: "positions" },
    { status: 410, body: { detail: "No longer available." } },
  );
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "dead" });
  expect((await driver.jobOf(jobId)).last_error).toMatch(/^positions: .*410.*No longer available/);
  expect(alerts("job_dead").find((line) => line.jobId === jobId)?.reason).toMatch(/^positions: /);
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: true, orders: false });
  expect((await storedCounts(driver, account)).positions).toBeGreaterThan(0);
});

test.each([400, 401, 403])("%i: tried again after an hour, and a wave of them raises one alert", async (status) => {
  await driver.stack.redis.flush();
  const raised = alerts("provider_unauthorized").length;
  for (const { account, jobId } of [
    await accountWithNews(driver),
    await accountWithNews(driver),
    await accountWithNews(driver),
  ]) {
    await driver.fault({ accountId: account }, { status });
    expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "failed" });
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 1 });
    expect(await delayOf(jobId)).toBeGreaterThan(59 * MINUTE);
  }
  expect(alerts("provider_unauthorized")).toHaveLength(raised + 1);
});

test("an event shortens a failing job's delay once an attempt, no sooner than five minutes after it; CONNECTION_FIXED at once", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const failedAgo = (minutes: number, attempts: number, status = 500) => driver.sql`
    update snaptrade_sync_jobs set attempts = ${attempts}, failed_status = ${status},
      failed_at = now() - make_interval(mins => ${minutes}), due_at = now() + interval '2 hours' where id = ${jobId}`;
  const dueInMinutes = async () => ((await driver.jobOf(jobId)).due_at.getTime() - Date.now()) / MINUTE;

  await failedAgo(1, 1);
  await driver.redis("DEL", `snaptrade:account:queued:holdings:${account}`);
  expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId });
  expect(await dueInMinutes()).toBeCloseTo(4, 0);
  expect(driver.published.at(-1)?.dedupe).toBe(`${jobId}-2`);

  await failedAgo(20, 1);
  await driver.event(HOLDINGS, account);
  expect(await dueInMinutes()).toBeCloseTo(120, 0);

  await failedAgo(20, 2, 401);
  await driver.event(HOLDINGS, account);
  expect(await dueInMinutes()).toBeCloseTo(40, 0);

  await failedAgo(20, 3);
  await driver.event(HOLDINGS, account);
  expect(await dueInMinutes()).toBeCloseTo(0, 0);

  await failedAgo(1, 3, 401);
  const { connectionId, userId } = driver.stack.snaptrade.account(account) ?? {};
  await driver.app.post({ eventType: "CONNECTION_FIXED", brokerageAuthorizationId: connectionId, userId });
  expect(await dueInMinutes()).toBeCloseTo(0, 0);
});
