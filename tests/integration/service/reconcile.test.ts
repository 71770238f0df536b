import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { isAway } from "@/lib/guards/redis-scripts";
import {
  addAccounts,
  empty,
  type JobPublish,
  jobsPublished,
  names,
  reconcileTick,
  timePasses,
} from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** A slot of holdings is three calls: 0.96 s. */
const RATE_LIMIT = 250;
const SLOT_MS = (3 * 60_000) / (RATE_LIMIT * 0.75);
const SLOTS_A_MINUTE = Math.floor(60_000 / SLOT_MS) + 1;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 2, rateLimitPerMinute: RATE_LIMIT });
});
beforeEach(() => empty(driver));
afterAll(() => driver.app.close());

/** A queued job of each account with its slot, as intake leaves it; QStash took its message and lost it. */
async function loseJobs(accounts: string[]): Promise<JobPublish[]> {
  await addAccounts(driver, accounts, { holdings_synced_at: new Date() });
  const rows = await driver.sql<{ id: string; account_id: string }[]>`
    insert into snaptrade_sync_jobs (work_type, account_id, reason, delivery, published_at, created_at)
    select 'holdings', account_id, 'event', 1, clock_timestamp(), clock_timestamp()
    from unnest(${accounts}::text[]) as account_id returning id, account_id`;
  const jobs = rows.map(({ id, account_id }) => ({
    jobId: id,
    workType: "holdings" as const,
    accountId: account_id,
    delivery: 1,
  }));
  const waits = await driver.service.guards.settleSlots(jobs.map((job) => ({ ...job, calls: 3, dueInMs: 0 })));
  if (isAway(waits)) throw new Error("Redis is away");
  return jobs.map((job, i) => ({ ...job, delayMs: waits[i] ?? 0 }));
}

/** What one tick publishes. */
async function tick(): Promise<JobPublish[]> {
  const before = driver.published.length;
  const { republished } = await reconcileTick(driver);
  const published = jobsPublished(driver).slice(before);
  expect(published).toHaveLength(republished);
  return published;
}

describe("a publish that was lost", () => {
  test("is made good after the grace and not before, under the next delivery", async () => {
    await addAccounts(driver, ["acct"], { holdings_synced_at: new Date() });
    await driver.event("ACCOUNT_HOLDINGS_UPDATED", "acct", { userId: "owner" });
    const [lost] = jobsPublished(driver);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 15_000);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 16_000);
    expect(await tick()).toEqual([{ ...lost, delivery: 2, delayMs: 0 }]);
    expect(await driver.jobOf(lost?.jobId)).toMatchObject({
      status: "queued",
      delivery: 2,
      republished: 1,
      attempts: 0,
    });
  });

  test.each([
    ["its slots known", () => Promise.resolve()],
    ["its slots forgotten", () => driver.stack.redis.flush()],
  ])("is published again at growing distances, at most 8 minutes, until a run begins (%s)", async (_when, forget) => {
    await loseJobs(["acct"]);
    for (const seconds of [30, 60, 120, 240, 480, 480]) {
      await forget();
      await timePasses(driver, (seconds / 2) * 1_000);
      expect(await tick()).toEqual([]);
      await timePasses(driver, (seconds / 2 + 1) * 1_000);
      expect(await tick()).toHaveLength(1);
    }
    const last = jobsPublished(driver).at(-1);
    await driver.sql`update snaptrade_sync_jobs set status = 'running', lease_until = now(), republished = 0`;
    await driver.sql`update snaptrade_sync_jobs set status = 'queued', lease_until = null`;
    await timePasses(driver, 31_000);
    expect(await tick()).toMatchObject([{ jobId: last?.jobId, delivery: 8 }]);
  });

  test("is not made good before the job is due", async () => {
    await loseJobs(["acct"]);
    await driver.sql`update snaptrade_sync_jobs set due_at = now() + interval '5 minutes'`;
    await timePasses(driver, 5 * 60_000);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 15_000);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 16_000);
    expect(await tick()).toHaveLength(1);
  });

  test("of a job behind a live run is the run's business", async () => {
    await loseJobs(["acct"]);
    await driver.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, reason, status, lease_until)
      values ('holdings', 'acct', 'event', 'running', now() + interval '1 hour')`;
    await driver.sql`update snaptrade_sync_jobs set delivery = 0, published_at = null where status = 'queued'`;
    await timePasses(driver, 10 * 60_000);
    expect(await tick()).toEqual([]);
  });

  test("is made good oldest first, at most a minute of slots a tick", async () => {
    const accounts = names("acct", SLOTS_A_MINUTE + 9);
    await loseJobs(accounts);
    await driver.stack.redis.flush();
    await driver.sql`update snaptrade_sync_jobs set created_at = created_at - interval '1 hour' where account_id in ('acct-0070', 'acct-0071')`;
    await timePasses(driver, 31_000);
    const first = await tick();
    const bySlot = first.toSorted((a, b) => a.delayMs - b.delayMs).map(({ accountId }) => accountId);
    expect(bySlot.slice(0, 3)).toEqual(["acct-0070", "acct-0071", "acct-0000"]);
    expect(first).toHaveLength(SLOTS_A_MINUTE);
    expect(Math.max(...first.map(({ delayMs }) => delayMs))).toBeLessThanOrEqual(60_000);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 60_000);
    const rest = await tick();
    expect([...first, ...rest].map(({ accountId }) => accountId).toSorted()).toEqual(expect.arrayContaining(accounts));
  });
});

describe("what QStash merely holds back", () => {
  test("is never published again while its slot is ahead, and 30 s after it", async () => {
    await driver.service.guards.settleSlots(
      names("other", 625).map((jobId) => ({
        jobId,
        workType: "holdings",
        accountId: jobId,
        delivery: 1,
        calls: 3,
        dueInMs: 0,
      })),
    );
    const [held] = await loseJobs(["acct"]);
    expect(held?.delayMs).toBeGreaterThan(599_000);
    for (let minute = 0; minute < 10; minute += 1) {
      expect(await tick()).toEqual([]);
      await timePasses(driver, 60_000);
    }
    await timePasses(driver, 15_000);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 16_000);
    expect(await tick()).toMatchObject([{ jobId: held?.jobId, delivery: 2 }]);
  });

  test("is published once after Redis lost everything, not each tick", async () => {
    const lost = await loseJobs(names("acct", 20));
    await driver.stack.redis.flush();
    expect(await tick()).toEqual([]);
    await timePasses(driver, 31_000);
    expect((await tick()).map(({ jobId }) => jobId).toSorted()).toEqual(lost.map(({ jobId }) => jobId).toSorted());
    await driver.stack.redis.flush();
    for (const seconds of [0, 20, 20]) {
      await timePasses(driver, seconds * 1_000);
      expect(await tick()).toEqual([]);
    }
  });
});

describe("ticks that overlap, repeat or break off", () => {
  test("never publish one delivery number twice, nor charge the budget twice", async () => {
    await loseJobs(names("acct", 30));
    await driver.stack.redis.flush();
    await timePasses(driver, 31_000);
    const before = driver.published.length;
    await Promise.all(Array.from({ length: 4 }, () => reconcileTick(driver)));
    const published = driver.published.slice(before).map(({ dedupe }) => dedupe);
    expect(published).toHaveLength(30);
    expect(new Set(published).size).toBe(30);
    const [wait] = [
      await driver.service.guards.reserveSlots([{ jobId: "next", delivery: 1, calls: 3 }], 60_000),
    ].flat();
    expect(wait).toBeLessThanOrEqual(30 * SLOT_MS);
  });

  test("an overtaken tick publishes nothing that another one has published since", async () => {
    await loseJobs(names("acct", 3));
    await timePasses(driver, 40_000);
    const reserved = driver.hold("reconcile:reserved");
    const slow = reconcileTick(driver);
    await reserved.reached;
    expect(await tick()).toHaveLength(3);
    reserved.release();
    expect((await slow).republished).toBe(0);
  });

  test("a job that begins while a tick looks at it is left alone", async () => {
    const [lost] = await loseJobs(["acct"]);
    await timePasses(driver, 31_000);
    const listed = driver.hold("reconcile:listed");
    const slow = reconcileTick(driver);
    await listed.reached;
    await driver.sql`update snaptrade_sync_jobs set status = 'running', lease_until = now() + interval '1 minute'`;
    listed.release();
    expect((await slow).republished).toBe(0);
    expect(await driver.jobOf(lost?.jobId)).toMatchObject({ delivery: 1, republished: 0 });
  });

  test("a crash before the publish costs a grace, not a job", async () => {
    await loseJobs(["acct"]);
    await timePasses(driver, 31_000);
    driver.failAt("reconcile:handed-out", new Error("the process is gone"));
    await expect(reconcileTick(driver)).rejects.toThrow("500");
    await timePasses(driver, 30_000);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 31_000);
    expect(await tick()).toMatchObject([{ delivery: 3 }]);
  });

  test("a slot that a broken-off tick left behind gives no right to another one beyond the minute", async () => {
    await loseJobs(names("acct", 10));
    await timePasses(driver, 45_000);
    driver.failAt("reconcile:reserved", new Error("the process is gone"));
    await expect(reconcileTick(driver)).rejects.toThrow("500");
    await timePasses(driver, 45_000);
    const others = names("other", 2 * SLOTS_A_MINUTE).map((jobId) => ({ jobId, delivery: 1, calls: 3 }));
    await driver.service.guards.reserveSlots(others, 60_000);
    expect(await tick()).toEqual([]);
    await timePasses(driver, 45_000);
    expect(await tick()).toHaveLength(10);
  });
});

describe("a tick", () => {
  test("with 2,000 queued jobs asks Redis once a page and is done in seconds", async () => {
    const accounts = names("acct", 2_000);
    await addAccounts(driver, accounts, { holdings_synced_at: new Date() });
    await driver.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, reason, delivery, published_at, due_at)
      select 'holdings', account_id, 'event', 1, now() - interval '1 minute', now() - interval '1 minute' from snaptrade_accounts`;
    const jobs = await driver.sql<{ id: string }[]>`select id from snaptrade_sync_jobs`;
    await driver.service.guards.settleSlots(
      jobs.map(({ id }) => ({ jobId: id, workType: "holdings", accountId: id, delivery: 1, calls: 3, dueInMs: 0 })),
    );
    const startedAt = performance.now();
    const cost = await driver.costOf(async () => expect(await tick()).toEqual([]));
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    expect(cost.redis).toBeLessThanOrEqual(2 * 5 + 2);
    expect(cost.qstash).toBe(0);
  });

  test("writes the heartbeat", async () => {
    await reconcileTick(driver);
    const [row] = await driver.sql`
      select at > clock_timestamp() - interval '10 seconds' as fresh from snaptrade_service_state where name = 'reconcile'`;
    expect(row).toEqual({ fresh: true });
  });
});
