import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { workerPath } from "@/lib/jobs/publisher";
import { accountWithNews } from "@/tests/integration/service/account-with-news";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { storedVersion } from "@/tests/integration/service/stored-holdings";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterEach(() => {
  driver.stack.redis.clearFaults();
  driver.stack.supabase.clearFaults();
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const whole = { positions: true, balances: true, orders: true };

test("Redis away at admission: 503 with Retry-After, nothing begun, and QStash's retry runs the job", async () => {
  const { account, jobId } = await accountWithNews(driver);
  driver.stack.redis.fault({ outage: true });
  const calls = driver.callsOf(account).length;
  const answer = await driver.deliver(jobId);
  expect(answer).toMatchObject({ status: 503, outcome: "redis_away" });
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 0, delivery: 1, started_at: null });
  expect(driver.callsOf(account)).toHaveLength(calls);
  driver.stack.redis.clearFaults();
  expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
});

// B33
test("Redis admits a run and its answer is lost: nothing is read, and the lock that nobody knows of stops no retry", async () => {
  const { jobId } = await accountWithNews(driver);
  driver.stack.redis.fault({ dropReply: true });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 503, outcome: "redis_away" });
  expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
});

test("Redis lost between admission and unqueue: nothing is read, the job is given back without an attempt, its delivery comes again", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const calls = driver.callsOf(account).length;
  const begun = driver.hold("run:begun");
  const run = driver.deliver(jobId);
  await begun.reached;
  driver.stack.redis.fault({ outage: true });
  begun.release();
  const answer = await run;
  expect(answer).toMatchObject({ status: 503, outcome: "redis_away" });
  expect(answer.headers.get("retry-after")).not.toBeNull();
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 0, delivery: 1 });
  expect(driver.callsOf(account)).toHaveLength(calls);
  driver.stack.redis.clearFaults();
  expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
  expect(await storedVersion(driver, account, 2)).toEqual(whole);
});

test("a job given back with a trailing job behind it: that one is published, and the retry of the old message does nothing", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const begun = driver.hold("run:begun");
  const run = driver.deliver(jobId);
  await begun.reached;
  await driver.event(HOLDINGS, account);
  await driver.app.settled();
  const trailing = (await driver.jobs(account)).find(({ status }) => status === "queued");
  driver.stack.redis.fault({ outage: true });
  begun.release();
  expect(await run).toMatchObject({ status: 503 });
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "superseded" });
  expect(await driver.jobOf(trailing?.id)).toMatchObject({ status: "queued", attempts: 0, delivery: 1 });
  expect(driver.published.at(-1)?.dedupe).toBe(`${trailing?.id}-1`);
  driver.stack.redis.clearFaults();
  expect(await driver.deliver(jobId, 1)).toMatchObject({ status: 200, outcome: "overtaken" });
  expect(await driver.deliver(trailing?.id)).toMatchObject({ outcome: "done" });
});

test("Redis lost before the release: the run is done, and the lock that stays stops nobody", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const committed = driver.hold("run:committed");
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  const trailing = await driver.event(HOLDINGS, account);
  reading.release();
  await committed.reached;
  driver.stack.redis.fault({ outage: true });
  committed.release();
  expect(await run).toMatchObject({ status: 200, outcome: "done" });
  expect(driver.published.at(-1)?.dedupe).toBe(`${trailing.jobId}-1`);
  driver.stack.redis.clearFaults();
  expect(await driver.redis("GET", `snaptrade:account:lock:holdings:${account}`)).not.toBeNull();
  expect(await driver.deliver(trailing.jobId)).toMatchObject({ outcome: "done" });
  expect(await driver.redis("GET", `snaptrade:account:lock:holdings:${account}`)).toBeNull();
});

test("Redis flushed in the middle of a run: the data is right, and no second run begins beside it", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  await driver.stack.redis.flush();
  const trailing = await driver.event(HOLDINGS, account);
  expect(trailing).toMatchObject({ outcome: "accepted" });
  reading.release();
  expect(await run).toMatchObject({ outcome: "done" });
  expect(await driver.deliver(trailing.jobId)).toMatchObject({ outcome: "done" });
  expect((await driver.jobs(account)).map(({ status }) => status)).toEqual(["done", "done", "done"]);
});

test("Postgres away at begin: 503, nothing read; the retry runs the job", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const calls = driver.callsOf(account).length;
  const admitted = driver.hold("run:admitted");
  const run = driver.deliver(jobId);
  await admitted.reached;
  driver.stack.supabase.fault({ outage: true });
  admitted.release();
  expect(await run).toMatchObject({ status: 503, outcome: "postgres_away" });
  expect(driver.callsOf(account)).toHaveLength(calls);
  driver.stack.supabase.clearFaults();
  expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
});

test("Postgres away at the commit: 503, nothing half written; the lease ends the run, and a redelivery reads again", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  driver.stack.supabase.fault({ outage: true });
  reading.release();
  expect(await run).toMatchObject({ status: 503, outcome: "postgres_away" });
  driver.stack.supabase.clearFaults();
  expect(await driver.deliver(jobId, 1)).toMatchObject({ status: 200, outcome: "already_active" });
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: false, orders: false });
  await driver.sql`update snaptrade_sync_jobs set lease_until = now() - interval '1 second' where id = ${jobId}`;
  expect(await driver.deliver(jobId, 2)).toMatchObject({ outcome: "done" });
  expect(await storedVersion(driver, account, 2)).toEqual(whole);
});

test("Postgres's answer to the commit is lost: 503, the data stands, and the retry finds nothing to do", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  driver.stack.supabase.fault({ dropReply: true });
  reading.release();
  expect(await run).toMatchObject({ status: 503 });
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "done" });
  expect(await storedVersion(driver, account, 2)).toEqual(whole);
  expect(await driver.deliver(jobId, 1)).toMatchObject({ status: 200, outcome: "overtaken" });
});

test("anything unexpected is a failed attempt and 503, so that it cannot repeat for ever; the retry of that number does nothing", async () => {
  const { account, jobId } = await accountWithNews(driver);
  driver.failAt("run:read", new Error("a fault of ours"));
  expect(await driver.deliver(jobId)).toMatchObject({ status: 503, outcome: "unexpected" });
  const job = await driver.jobOf(jobId);
  expect(job).toMatchObject({ status: "queued", attempts: 1, delivery: 2 });
  expect(job.last_error).toContain("a fault of ours");
  const message = { jobId, workType: "holdings", accountId: account, delivery: 1 } as const;
  expect(await driver.deliverMessage(message, 1)).toMatchObject({ status: 200, outcome: "overtaken" });
  expect(await driver.redis("EXISTS", `snaptrade:account:lock:holdings:${account}`)).toBe(0);
  expect(await driver.deliverWhenDue(jobId)).toMatchObject({ outcome: "done" });
});

test("a user secret that cannot be decrypted is a failed attempt, and no part of it shows (I10)", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const { userId = "" } = driver.stack.snaptrade.account(account) ?? {};
  await driver.sql`update snaptrade_users set secret_ciphertext = 'v1.tampered-with' where user_id = ${userId}`;
  const calls = driver.callsOf(account).length;
  expect(await driver.deliver(jobId)).toMatchObject({ status: 503, outcome: "unexpected" });
  expect(driver.callsOf(account)).toHaveLength(calls);
  expect(JSON.stringify([await driver.jobOf(jobId), driver.app.log])).not.toContain("tampered-with");
  await driver.app.addUsers();
});

test("a 404 closes the account: the job and the trailing job are gone, and later events are ignored", async () => {
  const { account, jobId } = await accountWithNews(driver);
  await driver.fault({ accountId: account }, { status: 404 });
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  const webhookId = randomUUID();
  const trailing = await driver.event(HOLDINGS, account, { webhookId });
  const published = driver.published.length;
  reading.release();
  expect(await run).toMatchObject({ status: 200, outcome: "gone" });
  for (const id of [jobId, trailing.jobId]) expect(await driver.jobOf(id)).toMatchObject({ status: "gone" });
  expect(driver.published).toHaveLength(published);
  expect(await driver.rowsOf(webhookId)).toMatchObject([{ finished_at: expect.any(Date) }]);
  const later = randomUUID();
  // Not by Redis alone: neither of the closed jobs stands behind the queued key.
  expect(await driver.event(HOLDINGS, account, { webhookId: later })).toMatchObject({ outcome: "ignored" });
  expect(await driver.rowsOf(later)).toMatchObject([{ outcome: "ignored", processed: false, job_ids: [] }]);
});

test("a message that is no job of its route is refused for good", async () => {
  const good = { jobId: randomUUID(), workType: "holdings", accountId: "acct-0000", delivery: 1 };
  const bodies = [
    "",
    "no JSON",
    "null",
    "{}",
    JSON.stringify({ ...good, jobId: "1; drop table" }),
    JSON.stringify({ ...good, delivery: 0 }),
    JSON.stringify({ ...good, delivery: "1" }),
    JSON.stringify({ ...good, accountId: "acct:*" }),
    JSON.stringify({ ...good, workType: "transactions" }),
  ];
  await driver.app.settled();
  const cost = await driver.costOf(async () => {
    for (const body of bodies) {
      const answer = await driver.asQStash(workerPath("holdings"), body);
      expect(answer.status, body).toBe(489);
      expect(answer.headers.get("upstash-nonretryable-error")).toBe("true");
    }
  });
  expect(cost).toEqual({ redis: 0, postgres: 0, qstash: 0, snaptrade: 0 });
});

test("a message of a job that is not ours, or of another key than its job's, does nothing", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await driver.synced(driver.nextAccount());
  const calls = driver.stack.snaptrade.state().calls.length;
  for (const message of [
    { jobId: randomUUID(), workType: "holdings", accountId: account, delivery: 1 },
    { jobId, workType: "holdings", accountId: other, delivery: 1 },
    { jobId, workType: "transactions", accountId: account, delivery: 1 },
    { jobId, workType: "holdings", accountId: account, delivery: 2 },
  ] as const) {
    expect(await driver.deliverMessage(message)).toMatchObject({ status: 200, outcome: "overtaken" });
  }
  expect(driver.stack.snaptrade.state().calls).toHaveLength(calls);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
});
