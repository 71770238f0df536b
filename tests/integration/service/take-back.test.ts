import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  addAccounts,
  empty,
  jobsPublished,
  names,
  reconcileTick,
  timePasses,
} from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const LEASE_MS = 60_000;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 2 });
});
beforeEach(() => empty(driver));
afterAll(() => driver.app.close());

/** A run that began and whose worker is gone: the lease has ended. Answers its job. */
async function abandonedRun(account: string, attempts = 1): Promise<string> {
  const [row] = await driver.sql<{ id: string }[]>`
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, attempts, delivery, published_at, started_at, lease_until, fence)
    values ('holdings', ${account}, 'event', 'running', ${attempts}, 1, now() - interval '61 seconds', now() - interval '61 seconds',
      now() - interval '1 second', nextval('snaptrade_fence')) returning id`;
  return row?.id ?? "";
}

async function eventOf(jobId: string, webhookId: string): Promise<void> {
  await driver.sql`
    insert into snaptrade_webhook_events (webhook_id, event_type, account_id, outcome, processed, job_ids)
    values (${webhookId}, ${HOLDINGS}, 'acct', 'accepted', true, ${[jobId]})`;
}

const trailing = () => driver.event(HOLDINGS, "acct", { userId: "owner", webhookId: "second" });
const openRows = () =>
  driver.sql`select webhook_id, job_ids, finished_at from snaptrade_webhook_events order by webhook_id`;

describe("a run past its lease", () => {
  beforeEach(() => addAccounts(driver, ["acct"], { holdings_synced_at: new Date() }));

  test("goes back to the queue with its attempt spent, and is published in the same tick", async () => {
    const jobId = await abandonedRun("acct", 3);
    expect(await reconcileTick(driver)).toMatchObject({ taken: 1, dead: 0, republished: 1 });
    expect(jobsPublished(driver)).toMatchObject([{ jobId, delivery: 2 }]);
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", attempts: 3, lease_until: null });
    expect(await reconcileTick(driver)).toMatchObject({ taken: 0, republished: 0 });
  });

  test("before its end is left alone", async () => {
    const jobId = await abandonedRun("acct");
    await driver.sql`update snaptrade_sync_jobs set lease_until = now() + interval '20 seconds'`;
    expect(await reconcileTick(driver)).toMatchObject({ taken: 0, republished: 0 });
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "running" });
  });

  test("is superseded by the trailing job, which takes over its events and its attempts and is published at once", async () => {
    const jobId = await abandonedRun("acct", 5);
    await eventOf(jobId, "first");
    const next = await trailing();
    expect(next).toMatchObject({ outcome: "accepted" });
    expect(jobsPublished(driver)).toEqual([]);

    expect(await reconcileTick(driver)).toMatchObject({ taken: 1, dead: 0, republished: 1 });
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "superseded", lease_until: null });
    expect(await driver.jobOf(next.jobId)).toMatchObject({ status: "queued", attempts: 5, delivery: 1 });
    expect(jobsPublished(driver)).toMatchObject([{ jobId: next.jobId, delivery: 1 }]);
    expect(await openRows()).toMatchObject([
      { webhook_id: "first", job_ids: [next.jobId], finished_at: null },
      { webhook_id: "second", job_ids: [next.jobId], finished_at: null },
    ]);
  });

  test("at the limit of attempts is dead, with one alert, its events are finished and its key is free", async () => {
    const jobId = await abandonedRun("acct", 8);
    await eventOf(jobId, "first");
    const ticks = await Promise.all([reconcileTick(driver), reconcileTick(driver), reconcileTick(driver)]);
    expect(ticks.reduce((sum, { dead }) => sum + dead, 0)).toBe(1);
    expect(await driver.jobOf(jobId)).toMatchObject({
      status: "dead",
      last_error: "the last attempt did not end within its lease",
    });
    expect(driver.app.log.filter(({ alert }) => alert === "job_dead")).toMatchObject([{ jobId, level: "error" }]);
    expect((await openRows())[0]?.finished_at).not.toBeNull();
    expect(jobsPublished(driver)).toEqual([]);
    expect(await trailing()).toMatchObject({ outcome: "accepted" });
  });

  test("that dies leaves the trailing job to go on with attempts of its own", async () => {
    await abandonedRun("acct", 8);
    const next = await trailing();
    expect(await reconcileTick(driver)).toMatchObject({ taken: 1, dead: 1 });
    expect(jobsPublished(driver)).toMatchObject([{ jobId: next.jobId, delivery: 1 }]);
    expect(await driver.jobOf(next.jobId)).toMatchObject({ status: "queued", attempts: 0 });
  });

  test("is published by the next tick when this one breaks off", async () => {
    const jobId = await abandonedRun("acct");
    driver.failAt("reconcile:taken", new Error("the process is gone"));
    await expect(reconcileTick(driver)).rejects.toThrow("500");
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued" });
    expect(await reconcileTick(driver)).toMatchObject({ taken: 0, republished: 1 });
  });

  test("whose key somebody holds is left to the next tick", async () => {
    const jobId = await abandonedRun("acct");
    await driver.sql.begin(async (tx) => {
      await tx`select snaptrade_lock_key('holdings', 'acct')`;
      expect(await reconcileTick(driver)).toMatchObject({ taken: 0 });
    });
    expect(await reconcileTick(driver)).toMatchObject({ taken: 1 });
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued" });
  });

  test("is taken back while Redis is away, and published only when Redis is back", async () => {
    const jobId = await abandonedRun("acct");
    driver.stack.redis.fault({ outage: true });
    try {
      expect(await reconcileTick(driver)).toMatchObject({ taken: 1, republished: 0, redisAway: true });
    } finally {
      driver.stack.redis.clearFaults();
    }
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", delivery: 1 });
    expect(driver.published).toEqual([]);
    const [heartbeat] = await driver.sql`select from snaptrade_service_state where name = 'reconcile'`;
    expect(heartbeat).toBeDefined();
    expect(await reconcileTick(driver)).toMatchObject({ republished: 1, redisAway: false });
  });
});

test("I8: runs that all end in one crash are all queued and published again within two ticks", async () => {
  const accounts = await addAccounts(driver, names("acct", 250), { holdings_synced_at: new Date() });
  for (const account of accounts) await abandonedRun(account);
  const first = await reconcileTick(driver);
  const second = await reconcileTick(driver);
  expect([first.taken, second.taken]).toEqual([200, 50]);
  expect(new Set(jobsPublished(driver).map(({ accountId }) => accountId))).toEqual(new Set(accounts));
});

test("I8: a worker that is killed in mid-run costs its account one lease and one tick", async () => {
  await driver.app.addUsers();
  const { jobId } = await driver.event(HOLDINGS, "acct-0000");
  driver.failAt("run:unqueued", new Error("the process is gone"));
  expect((await driver.deliver(jobId)).status).toBe(503);
  await timePasses(driver, LEASE_MS - 20_000);
  expect(await reconcileTick(driver)).toMatchObject({ taken: 0 });
  await timePasses(driver, 21_000);
  expect(await reconcileTick(driver)).toMatchObject({ taken: 1, republished: 1 });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
});
