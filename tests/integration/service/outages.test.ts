import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { guardContext } from "@/lib/composition";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { createFunctionCaller } from "@/lib/store/call-function";
import { createStore } from "@/lib/store/store";
import { accountWithNews, expectNewsStored } from "@/tests/integration/service/account-with-news";
import { reconcileTick, timePasses } from "@/tests/integration/service/cron-calls";
import { type DeliveryAnswer, type Driver, driveService } from "@/tests/integration/service/drive-service";
import { storedVersion } from "@/tests/integration/service/stored-holdings";
import { startTcpProxy, type TcpProxy } from "@/tests/support/tcp-proxy";

/** A part is away, full or silent: what the service answers meanwhile, and that afterwards all is stored. */
let driver: Driver;
let usual: Pick<Driver["service"], "guards" | "store">;
let proxy: TcpProxy | undefined;

beforeAll(async () => {
  driver = await driveService({ accounts: 80 });
  usual = { guards: driver.service.guards, store: driver.service.store };
});
afterEach(async () => {
  Object.assign(driver.service, usual);
  driver.stack.redis.clearFaults();
  driver.stack.qstash.faults.set({ publish: { acknowledgeAndLose: true } });
  await proxy?.close();
  proxy = undefined;
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const queuedKey = (account: string) => `snaptrade:account:queued:holdings:${account}`;

/** Holds the keys' locks as somebody else's long transaction would. */
async function holdKeys(accounts: string[]): Promise<() => Promise<void>> {
  const held = await driver.sql.reserve();
  await held`begin`;
  for (const account of accounts) await held`select snaptrade_lock_key('holdings', ${account})`;
  return async () => {
    await held`commit`;
    held.release();
  };
}

/** The service's calls that wait for a lock. */
async function waitingCalls(): Promise<number[]> {
  const rows = await driver.sql<{ pid: number }[]>`
    select pid from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`;
  return rows.map(({ pid }) => pid);
}

function impatientStore(url: string) {
  return createStore(createFunctionCaller({ ...driver.service.env.supabase, url, timeoutMs: 1_500 }));
}

describe.each([
  ["answers with pages", { status: 200, body: "<html>Welcome</html>", times: 1000 }],
  ["answers with a gateway's pages", { status: 502, body: "<html>Bad Gateway</html>", times: 1000 }],
  ["is out of memory", { oom: true }],
  ["cannot be reached", { outage: true }],
])("Redis %s", (_, fault) => {
  test("events are accepted, runs give back, reconcile publishes nothing; then all is read", async () => {
    const { account, jobId } = await accountWithNews(driver);
    const other = await driver.synced(driver.nextAccount());
    driver.stack.snaptrade.bumpAccount(other, "holdings");
    driver.stack.redis.fault(fault);
    const calls = driver.stack.snaptrade.state().calls.length;
    const accepted = await driver.event(HOLDINGS, other);
    expect(accepted).toMatchObject({ status: 200, outcome: "accepted" });
    expect(await driver.event(HOLDINGS, other)).toMatchObject({ status: 200, outcome: "coalesced" });
    expect(await driver.deliver(jobId)).toMatchObject({ status: 503, outcome: "redis_away" });
    await timePasses(driver, 60_000);
    expect(await reconcileTick(driver)).toMatchObject({ redisAway: true, republished: 0 });
    expect(driver.stack.snaptrade.state().calls).toHaveLength(calls);

    driver.stack.redis.clearFaults();
    expect(await driver.deliver(jobId, 1)).toMatchObject({ status: 200, outcome: "done" });
    expect(await driver.deliver(accepted.jobId)).toMatchObject({ status: 200, outcome: "done" });
    for (const each of [account, other]) await expectNewsStored(driver, each);
  });
});

describe.each([
  ["loses the connection of a call", "pg_terminate_backend"],
  ["ends a call at its time limit", "pg_cancel_backend"],
])("Postgres %s", (_, end) => {
  /** Starts it, waits until its call hangs on the key, ends that call, and lets the key go. */
  async function cutOff<T>(account: string, start: () => Promise<T>): Promise<T> {
    const letGo = await holdKeys([account]);
    const started = start();
    await expect.poll(waitingCalls, { timeout: 10_000 }).toHaveLength(1);
    await driver.sql`select ${driver.sql(end)}(pid) from unnest(${await waitingCalls()}::int[]) as pid`;
    const answered = await started;
    await letGo();
    return answered;
  }

  test("in an acceptance: 503, the claims are gone, and the redelivery is accepted and read", async () => {
    const account = await driver.synced(driver.nextAccount());
    driver.stack.snaptrade.bumpAccount(account, "holdings");
    const webhookId = randomUUID();
    expect(await cutOff(account, () => driver.event(HOLDINGS, account, { webhookId }))).toMatchObject({ status: 503 });
    expect(await driver.rowsOf(webhookId)).toEqual([]);
    expect(await driver.redis("EXISTS", `snaptrade:webhook:${webhookId}`, queuedKey(account))).toBe(0);
    const { outcome, jobId } = await driver.event(HOLDINGS, account, { webhookId });
    expect(outcome).toBe("accepted");
    expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
    await expectNewsStored(driver, account);
  });

  test("in a begin: 503, nothing is read, and QStash's retry runs the job", async () => {
    const { account, jobId } = await accountWithNews(driver);
    const calls = driver.callsOf(account).length;
    expect(await cutOff(account, () => driver.deliver(jobId))).toMatchObject({ status: 503, outcome: "postgres_away" });
    expect(driver.callsOf(account)).toHaveLength(calls);
    expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
    await expectNewsStored(driver, account);
  });

  test("in a commit: 503, nothing is half written, and after the lease and a tick the job is read again", async () => {
    const { account, jobId } = await accountWithNews(driver);
    const read = driver.hold("run:read");
    const run = driver.deliver(jobId);
    await read.reached;
    const answered = await cutOff<DeliveryAnswer>(account, () => {
      read.release();
      return run;
    });
    expect(answered).toMatchObject({ status: 503, outcome: "postgres_away" });
    expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: false, orders: false });
    await timePasses(driver, 60_000);
    expect(await reconcileTick(driver)).toMatchObject({ taken: 1 });
    expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
    await expectNewsStored(driver, account);
  });
});

test("every connection to Postgres is taken: 503 with our claims gone, nothing is read; then all is accepted and read", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await driver.synced(driver.nextAccount());
  driver.stack.snaptrade.bumpAccount(other, "holdings");
  const calls = driver.stack.snaptrade.state().calls.length;
  const ours = await driver.sql.reserve();
  const [database] = await ours<{ name: string }[]>`select current_database() as name`;
  const limit = (count: number) => ours.unsafe(`alter database ${database?.name} connection limit ${count}`);
  const webhookId = randomUUID();
  const message = { jobId, workType: "holdings", accountId: account, delivery: 1 } as const;
  try {
    await limit(1);
    await ours`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    expect(await driver.event(HOLDINGS, other, { webhookId })).toMatchObject({ status: 503 });
    expect(await driver.redis("EXISTS", `snaptrade:webhook:${webhookId}`)).toBe(0);
    expect(await driver.deliverMessage(message)).toMatchObject({ status: 503, outcome: "postgres_away" });
    expect(driver.stack.snaptrade.state().calls).toHaveLength(calls);
  } finally {
    await limit(-1);
    ours.release();
  }

  const accepted = await driver.event(HOLDINGS, other, { webhookId });
  expect(accepted).toMatchObject({ status: 200, outcome: "accepted" });
  for (const id of [jobId, accepted.jobId]) expect(await driver.deliver(id, 1)).toMatchObject({ outcome: "done" });
  for (const each of [account, other]) await expectNewsStored(driver, each);
});

test("Postgres accepts after its time was up: 503, the redelivery is a duplicate, reconcile publishes, and all is read", async () => {
  const accounts: string[] = [];
  for (let i = 0; i < 3; i += 1) accounts.push(await driver.synced(driver.nextAccount()));
  for (const account of accounts) driver.stack.snaptrade.bumpAccount(account, "holdings");
  driver.service.store = impatientStore(driver.service.env.supabase.url);
  const ids = new Map(accounts.map((account) => [account, randomUUID()]));
  const post = (account: string) => driver.event(HOLDINGS, account, { webhookId: ids.get(account) });

  const letGo = await holdKeys(accounts);
  for (const { status } of await Promise.all(accounts.map(post))) expect(status).toBe(503);
  await letGo();
  driver.service.store = usual.store;
  const queued = async () =>
    (await Promise.all(accounts.map(driver.jobs))).flat().filter(({ status }) => status === "queued");
  await expect.poll(async () => (await queued()).length, { timeout: 10_000 }).toBe(accounts.length);

  for (const account of accounts) expect(await post(account)).toMatchObject({ status: 200, outcome: "duplicate" });
  await timePasses(driver, 31_000);
  expect(await reconcileTick(driver)).toMatchObject({ republished: accounts.length });
  for (const { id } of await queued()) expect(await driver.deliver(id)).toMatchObject({ outcome: "done" });
  for (const account of accounts) await expectNewsStored(driver, account);
});

test("connections to Postgres that carry nothing any more and never end: 503 within the time limit; new ones are opened", async () => {
  const { account, jobId } = await accountWithNews(driver);
  proxy = await startTcpProxy(driver.service.env.supabase.url);
  driver.service.store = impatientStore(proxy.url);
  expect(await driver.event(HOLDINGS, driver.nextAccount())).toMatchObject({ status: 200, outcome: "accepted" });
  expect(proxy.open()).toBeGreaterThan(0);

  proxy.freeze();
  const webhookId = randomUUID();
  const other = driver.nextAccount();
  expect(await driver.event(HOLDINGS, other, { webhookId })).toMatchObject({ status: 503 });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 503, outcome: "postgres_away" });
  proxy.heal();
  expect(await driver.event(HOLDINGS, other, { webhookId })).toMatchObject({ status: 200, outcome: "accepted" });
  expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
  await expectNewsStored(driver, account);
});

test("connections to Redis that carry nothing any more and never end: accepted within the time limit; new ones are opened", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const { env, logger } = driver.service;
  proxy = await startTcpProxy(env.redis.url);
  const redis = { ...env.redis, url: proxy.url };
  driver.service.guards = createGuards({ ...guardContext({ ...env, redis }, logger, 700), clock: driver.redisClock });
  expect(await driver.event(HOLDINGS, driver.nextAccount())).toMatchObject({ status: 200, outcome: "accepted" });
  expect(proxy.open()).toBeGreaterThan(0);

  proxy.freeze();
  expect(await driver.event(HOLDINGS, driver.nextAccount())).toMatchObject({ status: 200, outcome: "accepted" });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 503, outcome: "redis_away" });
  proxy.heal();
  expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
  await expectNewsStored(driver, account);
});

test("QStash delivers each message twice: one run each, with its three calls", async () => {
  const accounts: string[] = [];
  for (let i = 0; i < 8; i += 1) accounts.push(await driver.synced(driver.nextAccount()));
  for (const account of accounts) driver.stack.snaptrade.bumpAccount(account, "holdings");
  const deliveries = () => driver.stack.qstash.state().deliveries.filter(({ status }) => status !== null).length;
  const before = { deliveries: deliveries(), calls: driver.stack.snaptrade.state().calls.length };
  driver.stack.qstash.faults.set({ deliver: { duplicate: true } });
  await Promise.all(accounts.map((account) => driver.event(HOLDINGS, account)));
  await expect.poll(deliveries, { timeout: 20_000 }).toBe(before.deliveries + 2 * accounts.length);
  expect(driver.stack.snaptrade.state().calls).toHaveLength(before.calls + 3 * accounts.length);
  for (const account of accounts) {
    expect((await driver.jobs(account)).map(({ status }) => status)).toEqual(["done", "done"]);
    await expectNewsStored(driver, account);
  }
});
