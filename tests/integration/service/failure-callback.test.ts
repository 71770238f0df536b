import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { JobMessage } from "@/lib/domain";
import { FAILURE_PATH } from "@/lib/jobs/publisher";
import { reconcileTick } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ env: { SNAPTRADE_JOB_MAX_ATTEMPTS: "3" } });
});
afterEach(() => {
  driver.stack.redis.clearFaults();
  driver.stack.supabase.clearFaults();
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";

/** The callback of a message that QStash gave up, as it is documented. */
function callbackOf(source: object | string): string {
  const text = typeof source === "string" ? source : JSON.stringify(source);
  return JSON.stringify({
    status: 503,
    retried: 3,
    maxRetries: 3,
    dlqId: "1700000000000-0",
    sourceMessageId: "msg_given_up",
    sourceBody: Buffer.from(text).toString("base64"),
  });
}

async function queuedJob(): Promise<JobMessage> {
  const accountId = driver.nextAccount();
  const { jobId = "" } = await driver.event(HOLDINGS, accountId);
  return { jobId, workType: "holdings", accountId, delivery: 1 };
}

const alerts = () => driver.app.log.filter((line) => line.alert === "unknown_dead_letter").length;

test("QStash gives a delivery up: its callback hands out the next one, a minute later, and spends no attempt", async () => {
  const { qstash, redis } = driver.stack;
  qstash.faults.set({});
  qstash.clock.setScale(0);
  // The claim of the event and the four deliveries find no Redis; the callback does.
  redis.fault({ outage: true, times: 5 });
  const account = driver.nextAccount();
  const { jobId } = await driver.event(HOLDINGS, account);
  const answered = (path: string) =>
    qstash.state().deliveries.filter((delivery) => delivery.url.endsWith(path) && delivery.status !== null);
  for (const tries of [1, 2, 3, 4]) {
    await expect.poll(() => answered("holdings-sync").length, { timeout: 20_000 }).toBe(tries);
    expect(answered("holdings-sync").at(-1)).toMatchObject({ status: 503, retried: tries - 1 });
    if (tries < 4) qstash.clock.advance(30_000);
  }
  await expect.poll(() => answered(FAILURE_PATH), { timeout: 20_000 }).toMatchObject([{ status: 200 }]);
  const job = await driver.jobOf(jobId);
  expect(job).toMatchObject({ status: "queued", attempts: 0, delivery: 2 });
  expect(job.due_at.getTime() - Date.now()).toBeGreaterThan(30_000);
  expect(driver.published.at(-1)?.dedupe).toBe(`${jobId}-2`);

  qstash.clock.advance(58_000);
  expect(qstash.state()).toMatchObject({ pending: 1, inFlight: 0 });
  driver.stepRedisClock(61_000);
  qstash.clock.advance(3_000);
  await expect.poll(async () => (await driver.jobOf(jobId)).status, { timeout: 20_000 }).toBe("done");
  qstash.faults.set({ publish: { acknowledgeAndLose: true } });
});

test("a callback of an older delivery number does nothing", async () => {
  const job = await queuedJob();
  await driver.sql`update snaptrade_sync_jobs set delivery = 2 where id = ${job.jobId}`;
  const before = await driver.jobOf(job.jobId);
  const published = driver.published.length;
  expect(await driver.asQStash(FAILURE_PATH, callbackOf(job))).toMatchObject({ status: 200, outcome: "overtaken" });
  expect(await driver.jobOf(job.jobId)).toEqual(before);
  expect(driver.published).toHaveLength(published);
});

test("a callback that comes twice acts once", async () => {
  const job = await queuedJob();
  const answers = await Promise.all([1, 2, 3].map(() => driver.asQStash(FAILURE_PATH, callbackOf(job))));
  expect(answers.map(({ outcome }) => outcome).sort()).toEqual(["overtaken", "overtaken", "republished"]);
  expect(await driver.jobOf(job.jobId)).toMatchObject({ status: "queued", attempts: 0, delivery: 2 });
});

test("a callback of a job that runs or is done does nothing", async () => {
  const job = await queuedJob();
  const reading = driver.hold("run:read");
  const run = driver.deliverMessage(job);
  await reading.reached;
  expect(await driver.asQStash(FAILURE_PATH, callbackOf(job))).toMatchObject({ outcome: "overtaken" });
  reading.release();
  expect(await run).toMatchObject({ outcome: "done" });
  expect(await driver.asQStash(FAILURE_PATH, callbackOf(job))).toMatchObject({ outcome: "overtaken" });
  expect(await driver.jobOf(job.jobId)).toMatchObject({ status: "done" });
});

test("a job whose attempts already stand at the limit is dead, with one alert; an attempt more is never spent", async () => {
  const job = await queuedJob();
  await driver.sql`update snaptrade_sync_jobs set attempts = 3 where id = ${job.jobId}`;
  expect(await driver.asQStash(FAILURE_PATH, callbackOf(job))).toMatchObject({ status: 200, outcome: "dead" });
  expect(await driver.jobOf(job.jobId)).toMatchObject({ status: "dead", attempts: 3 });
  expect(driver.app.log.filter((line) => line.alert === "job_dead" && line.jobId === job.jobId)).toHaveLength(1);
});

test("a body that is no job of ours is answered 200 with one alert: no retry could change it", async () => {
  const good = { jobId: crypto.randomUUID(), workType: "holdings", accountId: "acct-0000", delivery: 1 };
  for (const body of [
    "",
    "no JSON",
    "[]",
    JSON.stringify({ status: 500 }),
    callbackOf(""),
    callbackOf("{}"),
    callbackOf({ ...good, accountId: "acct 0000" }),
    callbackOf({ sweepId: "a", page: 1, cursor: null }),
  ]) {
    const before = alerts();
    expect(await driver.asQStash(FAILURE_PATH, body), body).toMatchObject({ status: 200, outcome: "unknown" });
    expect(alerts()).toBe(before + 1);
  }
  expect(await driver.asQStash(FAILURE_PATH, callbackOf(good))).toMatchObject({ status: 200, outcome: "overtaken" });
});

test("Redis away: the job is left to reconcile, which publishes it once Redis is back", async () => {
  const job = await queuedJob();
  const before = await driver.jobOf(job.jobId);
  driver.stack.redis.fault({ outage: true });
  expect(await driver.asQStash(FAILURE_PATH, callbackOf(job))).toMatchObject({
    status: 200,
    outcome: "left_to_reconcile",
  });
  expect(await driver.jobOf(job.jobId)).toEqual(before);
  driver.stack.redis.clearFaults();
  await driver.sql`update snaptrade_sync_jobs set due_at = due_at - interval '1 minute',
    published_at = published_at - interval '1 minute' where id = ${job.jobId}`;
  driver.stepRedisClock(60_000);
  await reconcileTick(driver);
  expect(await driver.jobOf(job.jobId)).toMatchObject({ status: "queued", delivery: 2 });
  expect(await driver.deliver(job.jobId)).toMatchObject({ outcome: "done" });
});

test("Postgres away: the callback is asked for again", async () => {
  const job = await queuedJob();
  driver.stack.supabase.fault({ outage: true });
  const answer = await driver.asQStash(FAILURE_PATH, callbackOf(job));
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).not.toBeNull();
  driver.stack.supabase.clearFaults();
  expect(await driver.asQStash(FAILURE_PATH, callbackOf(job))).toMatchObject({ outcome: "republished" });
});
