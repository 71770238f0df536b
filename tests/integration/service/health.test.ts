import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { addAccounts, empty, names, reconcileTick, timePasses } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const MINUTE = 60_000;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 2, rateLimitPerMinute: 250 });
});
beforeEach(async () => {
  await empty(driver);
  await reconcileTick(driver);
});
afterAll(() => driver.app.close());

async function health(authorization?: string) {
  const response = await fetch(`${driver.app.url}/api/health`, { headers: authorization ? { authorization } : {} });
  expect(response.headers.get("cache-control")).toBe("no-store");
  return { code: response.status, body: await response.json() };
}

const asked = () => health(`Bearer ${driver.service.env.cronSecret}`);

/** A queued job of `acct` that is so many minutes past its due time, published then. */
async function overdueJob(minutes: number, account = "acct"): Promise<string> {
  await addAccounts(driver, [account], { holdings_synced_at: new Date() });
  const [row] = await driver.sql<{ id: string }[]>`
    insert into snaptrade_sync_jobs (work_type, account_id, reason, delivery, due_at, published_at, created_at)
    select 'holdings', ${account}, 'event', 1, t, t, t from (select now() - make_interval(mins => ${minutes}) as t) x returning id`;
  return row?.id ?? "";
}

/** The jobs' slots: the first is now, the others behind it. */
async function reserve(...jobIds: string[]): Promise<void> {
  await driver.service.guards.settleSlots(
    jobIds.map((jobId) => ({ jobId, workType: "holdings", accountId: "acct", delivery: 1, calls: 3, dueInMs: 0 })),
  );
}

describe("without the bearer", () => {
  test.each([undefined, "Bearer wrong", "Bearer ", "Basic local-cron-secret"])(
    "(%s) it says that it is up, and asks nobody",
    async (authorization) => {
      const cost = await driver.costOf(async () => {
        expect(await health(authorization)).toEqual({ code: 200, body: { status: "up" } });
      });
      expect(cost).toEqual({ redis: 0, postgres: 0, qstash: 0, snaptrade: 0 });
    },
  );
});

describe("with the bearer", () => {
  test("it shows everything, in the documented shape", async () => {
    const { code, body } = await asked();
    expect(body).toEqual({
      status: "ok",
      redis: "up",
      postgres: "up",
      qstash: "up",
      cron: { lastRunAt: expect.any(String) },
      queued: { count: 0, oldestSeconds: 0 },
      running: 0,
      dead: 0,
      cooldownUntil: null,
    });
    expect(code).toBe(200);
    expect(Math.abs(Date.now() - Date.parse(body.cron.lastRunAt))).toBeLessThan(MINUTE);
  });

  test("it counts jobs; dead ones and a cooldown are shown and are no fault", async () => {
    await overdueJob(2);
    await driver.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, reason, status, finished_at, lease_until) values
        ('transactions', 'acct', 'event', 'dead', now(), null), ('holdings', 'acct', 'event', 'dead', now(), null),
        ('holdings', 'acct', 'event', 'running', null, now() + interval '1 minute'), ('holdings', 'acct', 'event', 'done', now(), null)`;
    await driver.service.guards.observeLimits({
      accountId: "acct",
      holdMs: 0,
      cooldownMs: 40_000,
      accountCooldownMs: 0,
      counts: {},
    });
    const { code, body } = await asked();
    expect(code).toBe(200);
    expect(body).toMatchObject({ status: "ok", queued: { count: 1 }, running: 1, dead: 2 });
    expect(body.queued.oldestSeconds).toBeGreaterThanOrEqual(120);
    expect(body.queued.oldestSeconds).toBeLessThan(150);
    expect(Date.parse(body.cooldownUntil) - Date.now()).toBeGreaterThan(20_000);
    expect(Date.parse(body.cooldownUntil) - Date.now()).toBeLessThanOrEqual(40_000);
  });

  test("the heartbeat of the cron is a fault once it is 5 minutes old, and when it never was", async () => {
    await timePasses(driver, 4.5 * MINUTE);
    expect(await asked()).toMatchObject({ code: 200, body: { status: "ok" } });
    await timePasses(driver, 0.6 * MINUTE);
    expect(await asked()).toMatchObject({ code: 503, body: { status: "degraded" } });
    await driver.sql`delete from snaptrade_service_state`;
    expect(await asked()).toMatchObject({ code: 503, body: { status: "degraded", cron: { lastRunAt: null } } });
  });

  test("Redis or Postgres that cannot be reached is a fault", async () => {
    driver.stack.redis.fault({ outage: true });
    expect(await asked()).toMatchObject({ code: 503, body: { status: "down", redis: "down", postgres: "up" } });
    driver.stack.supabase.fault({ outage: true });
    expect(await asked()).toMatchObject({ code: 503, body: { status: "down", redis: "down", postgres: "down" } });
    driver.stack.redis.clearFaults();
    expect(await asked()).toMatchObject({ code: 503, body: { status: "down", redis: "up", postgres: "down" } });
    driver.stack.supabase.clearFaults();
    expect(await asked()).toMatchObject({ code: 200, body: { status: "ok" } });
  });

  test("QStash that cannot be reached is shown, and is no fault of ours", async () => {
    const { faults } = driver.stack.qstash;
    const usual = faults.current;
    faults.set({ outage: true });
    const seen = await asked();
    faults.set(usual);
    expect(seen).toMatchObject({ code: 200, body: { status: "degraded", qstash: "down" } });
  });
});

describe("a job over 15 minutes past its time is a fault", () => {
  test("from then on, and not before", async () => {
    await overdueJob(14);
    expect(await asked()).toMatchObject({ code: 200, body: { status: "ok" } });
    await timePasses(driver, 2 * MINUTE);
    expect(await asked()).toMatchObject({ code: 503, body: { status: "degraded" } });
  });

  test("but not one whose slot is ahead, until that is 15 minutes past", async () => {
    await reserve(...names("other", 625));
    await reserve(await overdueJob(60));
    expect(await asked()).toMatchObject({ code: 200, body: { status: "ok" } });
    driver.stepRedisClock(24 * MINUTE);
    expect(await asked()).toMatchObject({ code: 200, body: { status: "ok" } });
    driver.stepRedisClock(2 * MINUTE);
    expect(await asked()).toMatchObject({ code: 503 });
  });

  test("though many stand before it that merely wait for their slots", async () => {
    const held = await Promise.all(names("held", 40).map((account) => overdueJob(60, account)));
    await reserve(...held);
    expect(await asked()).toMatchObject({ code: 200 });
    await overdueJob(20);
    expect(await asked()).toMatchObject({ code: 503 });
  });

  test("though reconcile publishes it again and again, and gives it a new slot each time", async () => {
    await addAccounts(driver, ["acct"], { holdings_synced_at: new Date() });
    await driver.event(HOLDINGS, "acct", { userId: "owner" });
    const codes: number[] = [];
    for (let minute = 0; minute < 18; minute += 1) {
      await timePasses(driver, MINUTE);
      await reconcileTick(driver);
      codes.push((await asked()).code);
    }
    expect(codes.slice(0, 14)).toEqual(Array(14).fill(200));
    expect(codes.at(-1)).toBe(503);
  });

  test("but not one that is due later, nor one behind a live run", async () => {
    await overdueJob(60);
    await driver.sql`update snaptrade_sync_jobs set due_at = now() + interval '3 hours'`;
    expect(await asked()).toMatchObject({ code: 200 });
    await driver.sql`update snaptrade_sync_jobs set due_at = now() - interval '1 hour'`;
    await driver.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, reason, status, lease_until)
      values ('holdings', 'acct', 'event', 'running', now() + interval '1 minute')`;
    expect(await asked()).toMatchObject({ code: 200 });
  });
});
