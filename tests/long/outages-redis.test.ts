import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { guardContext } from "@/lib/composition";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { type RedisServer, startRedis } from "@/sandbox/redis/start-redis";
import { accountWithNews, expectNewsStored } from "@/tests/integration/service/account-with-news";
import { reconcileTick, timePasses } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** A Redis of our own: killed, full and slow for real, under the service's own time limits. */
let server: Extract<RedisServer, { kind: "server" }>;
let driver: Driver;
let port: number;

beforeAll(async () => {
  server = await ownRedis();
  port = Number(new URL(server.url).port);
  driver = await driveService({ redisUrl: server.url });
  driver.service.guards = createGuards({
    ...guardContext(driver.service.env, driver.service.logger),
    clock: driver.redisClock,
  });
});
afterEach(() => driver.stack.redis.clearFaults());
afterAll(async () => {
  await driver.app.close();
  await server.close();
});

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";

async function ownRedis(onPort?: number): Promise<typeof server> {
  const started = await startRedis(onPort === undefined ? {} : { port: onPort });
  if (started.kind === "mock") throw new Error("These tests need redis-server or valkey-server on the PATH");
  return started;
}

async function asAdmin<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(server.url);
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

/** A run that has read and not committed. */
async function runThatHasRead() {
  const { account, jobId } = await accountWithNews(driver);
  const read = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await read.reached;
  return {
    account,
    finish: () => {
      read.release();
      return run;
    },
  };
}

test("Redis is killed and comes back empty: events are accepted meanwhile, a run ends well, and nothing waits for what was lost", async () => {
  const before = await accountWithNews(driver);
  const running = await runThatHasRead();
  const meanwhile = await driver.synced(driver.nextAccount());
  driver.stack.snaptrade.bumpAccount(meanwhile, "holdings");

  const pid = await asAdmin(async (redis) => Number(/process_id:(\d+)/.exec(await redis.info("server"))?.[1]));
  process.kill(pid, "SIGKILL");
  await server.close();
  const webhookId = randomUUID();
  const accepted = await driver.event(HOLDINGS, meanwhile, { webhookId });
  expect(accepted).toMatchObject({ status: 200, outcome: "accepted" });
  expect(await driver.event(HOLDINGS, meanwhile, { webhookId })).toMatchObject({ outcome: "duplicate" });
  expect(await running.finish()).toMatchObject({ status: 200, outcome: "done" });
  expect(await driver.deliver(before.jobId)).toMatchObject({ status: 503, outcome: "redis_away" });
  expect(await reconcileTick(driver)).toMatchObject({ redisAway: true });

  server = await ownRedis(port);
  await expect.poll(() => driver.redis("PING"), { timeout: 20_000 }).toBe("PONG");
  expect(await driver.event(HOLDINGS, meanwhile, { webhookId })).toMatchObject({ outcome: "duplicate" });
  expect(await driver.deliver(before.jobId, 1)).toMatchObject({ status: 200, outcome: "done" });
  expect(await driver.deliver(accepted.jobId)).toMatchObject({ status: 200, outcome: "done" });
  for (const account of [before.account, running.account, meanwhile]) await expectNewsStored(driver, account);
});

test("Redis's memory is full: events are accepted, what has begun ends well, nothing else is read, and then all is", async () => {
  const before = await accountWithNews(driver);
  const running = await runThatHasRead();
  const meanwhile = await driver.synced(driver.nextAccount());
  driver.stack.snaptrade.bumpAccount(meanwhile, "holdings");

  await asAdmin((redis) => redis.config("SET", "maxmemory", "1"));
  const calls = driver.stack.snaptrade.state().calls.length;
  const webhookId = randomUUID();
  const accepted = await driver.event(HOLDINGS, meanwhile, { webhookId });
  expect(accepted).toMatchObject({ status: 200, outcome: "accepted" });
  expect(await driver.event(HOLDINGS, meanwhile, { webhookId })).toMatchObject({ outcome: "duplicate" });
  expect(await running.finish()).toMatchObject({ status: 200, outcome: "done" });
  expect(await driver.deliver(before.jobId)).toMatchObject({ status: 503, outcome: "redis_away" });
  await timePasses(driver, 61_000);
  await reconcileTick(driver);
  expect(driver.stack.snaptrade.state().calls).toHaveLength(calls);

  await asAdmin((redis) => redis.config("SET", "maxmemory", "0"));
  await timePasses(driver, 61_000);
  await reconcileTick(driver);
  for (const jobId of [before.jobId, accepted.jobId]) {
    expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "done" });
  }
  for (const account of [before.account, running.account, meanwhile]) await expectNewsStored(driver, account);
});

test("Redis answers six seconds late: nobody waits for it, and a claim that was made after its time covers no event", async () => {
  const account = await driver.synced(driver.nextAccount());
  const webhookId = randomUUID();
  driver.stack.redis.fault({ delayMs: 6_000 });
  const startedAt = performance.now();
  const first = await driver.event(HOLDINGS, account, { webhookId });
  expect(first).toMatchObject({ status: 200, outcome: "accepted" });
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  const queuedKey = `snaptrade:account:queued:holdings:${account}`;
  await expect.poll(() => driver.redis("GET", queuedKey), { timeout: 20_000 }).toMatch(/^pending:/);

  driver.stack.snaptrade.bumpAccount(account, "holdings");
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ outcome: "duplicate" });
  expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId: first.jobId });
  expect(await driver.deliver(first.jobId)).toMatchObject({ outcome: "done" });
  await expectNewsStored(driver, account);
});

test("Redis answers six seconds late: a lock that was taken after its time, by a run that gave up, stops nobody", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const calls = driver.callsOf(account).length;
  driver.stack.redis.fault({ delayMs: 6_000 });
  const startedAt = performance.now();
  expect(await driver.deliver(jobId)).toMatchObject({ status: 503, outcome: "redis_away" });
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  const lock = `snaptrade:account:lock:holdings:${account}`;
  await expect.poll(() => driver.redis("EXISTS", lock), { timeout: 20_000 }).toBe(1);
  expect(driver.callsOf(account)).toHaveLength(calls);

  expect(await driver.deliver(jobId, 1)).toMatchObject({ status: 200, outcome: "done" });
  expect(await driver.redis("EXISTS", lock)).toBe(0);
  await expectNewsStored(driver, account);
});
