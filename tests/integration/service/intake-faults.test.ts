import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { guardContext } from "@/lib/composition";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { effectOf } from "@/lib/webhook/event-effects";
import { reconcileTick } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { untilSomebodyWaits } from "@/tests/integration/sql/synced-data-rows";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterEach(() => {
  driver.stack.redis.clearFaults();
  driver.stack.supabase.clearFaults();
  driver.stack.qstash.faults.set({ publish: { acknowledgeAndLose: true } });
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const claimsOf = (webhookId: string, account: string) =>
  driver.redis("MGET", `snaptrade:webhook:${webhookId}`, `snaptrade:account:queued:holdings:${account}`);

/** One tick of the reconcile cron: how many jobs it published again. */
async function reconcile(): Promise<number> {
  return (await reconcileTick(driver)).republished;
}

/** As if the job had been published so long ago: in Postgres, and in Redis, which knows its slot. */
async function letTimePass(jobId: string | undefined, ms: number): Promise<void> {
  await driver.sql`
    update snaptrade_sync_jobs set due_at = due_at - make_interval(secs => ${ms / 1000}),
      published_at = published_at - make_interval(secs => ${ms / 1000}) where id = ${jobId ?? null}`;
  driver.stepRedisClock(ms);
}

test.each([
  ["cannot be reached", { outage: true }],
  ["has no database", { status: 503, body: { code: "PGRST001", message: "no connection", details: "", hint: "" } }],
  ["cancels the statement", { status: 500, body: { code: "57014", message: "timeout", details: "", hint: "" } }],
  ["refuses the row", { status: 400, body: { code: "22P02", message: "invalid", details: "", hint: "" } }],
])("Postgres %s: 503, our claims are gone, and the redelivery is accepted", async (_, fault) => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  driver.stack.supabase.fault(fault);
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 503 });
  expect(await claimsOf(webhookId, account)).toEqual([null, null]);
  driver.stack.supabase.clearFaults();
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 200, outcome: "accepted" });
});

test("Postgres away while another event holds the queued key: only our own claims go", async () => {
  const account = await driver.synced(driver.nextAccount());
  const [ours, other] = [driver.hold("intake:claimed"), driver.hold("intake:claimed")];
  const webhookId = randomUUID();
  const first = driver.event(HOLDINGS, account, { webhookId });
  await ours.reached;
  const second = driver.event(HOLDINGS, account);
  await other.reached;
  const claimed = await driver.redis("GET", `snaptrade:account:queued:holdings:${account}`);
  driver.stack.supabase.fault({ outage: true });
  ours.release();
  expect(await first).toMatchObject({ status: 503 });
  expect(await claimsOf(webhookId, account)).toEqual([null, claimed]);
  driver.stack.supabase.clearFaults();
  other.release();
  const { outcome, jobId } = await second;
  expect(outcome).toBe("accepted");
  expect(await claimsOf(webhookId, account)).toEqual([null, jobId]);
});

test("Postgres's answer is lost: 503, the redelivery is a duplicate, and reconcile publishes the job", async () => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  driver.stack.supabase.fault({ dropReply: true });
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 503 });
  const published = driver.published.length;
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 200, outcome: "duplicate" });
  expect(driver.published).toHaveLength(published);
  const [job] = await driver.jobs(account);
  await letTimePass(job?.id, 31_000);
  expect(await reconcile()).toBe(1);
  expect(driver.published.at(-1)?.dedupe).toBe(`${job?.id}-2`);
  expect(await driver.deliver(job?.id)).toMatchObject({ outcome: "done" });
});

test.each([
  ["cannot be reached", { outage: true }],
  ["is out of memory", { oom: true }],
  ["answers 500", { status: 500, body: { error: "ERR internal" }, times: 4 }],
  ["carries out the claim and loses the answer", { dropReply: 1 }],
])("Redis %s: the event is accepted and published, and Postgres knows its redelivery", async (_, fault) => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  driver.stack.redis.fault(fault);
  const accepted = await driver.event(HOLDINGS, account, { webhookId });
  expect(accepted).toMatchObject({ status: 200, outcome: "accepted" });
  expect(driver.published.at(-1)?.dedupe).toBe(`${accepted.jobId}-1`);
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 200, outcome: "duplicate" });
  driver.stack.redis.clearFaults();
  expect(await driver.deliver(accepted.jobId)).toMatchObject({ outcome: "done" });
});

// B20
test("twenty copies of one event at once are one acceptance also while Redis is away (I2)", async () => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  const eventTimestamp = new Date().toISOString();
  driver.stack.redis.fault({ outage: true });
  const published = driver.published.length;
  const post = () => driver.event(HOLDINGS, account, { webhookId, eventTimestamp });
  const answers = await Promise.all(Array.from({ length: 20 }, post));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(answers.filter(({ outcome }) => outcome === "accepted")).toHaveLength(1);
  expect(answers.filter(({ outcome }) => outcome === "duplicate")).toHaveLength(19);
  expect(await driver.rowsOf(webhookId)).toHaveLength(1);
  expect(await driver.jobs(account)).toHaveLength(1);
  expect(driver.published).toHaveLength(published + 1);
});

test("a copy that comes while another instance is storing the event waits for it, and is a duplicate (I2)", async () => {
  const account = await driver.synced(driver.nextAccount());
  const webhookId = randomUUID();
  const ids = { webhookId, eventType: HOLDINGS, accountId: account, connectionId: null, userId: null };
  const storing = {
    ...ids,
    ...{ eventTimestamp: new Date().toISOString(), payload: "{}", failedParts: null, unroutable: false, spacingMs: 0 },
    effect: effectOf({ eventType: HOLDINGS }),
  };
  let copy: ReturnType<Driver["event"]> | undefined;
  await driver.sql.begin(async (tx) => {
    await tx`select snaptrade_accept_event(${JSON.stringify(storing)}::text::jsonb)`;
    copy = driver.event(HOLDINGS, account, { webhookId });
    await untilSomebodyWaits(driver.sql);
  });
  expect(await copy).toMatchObject({ status: 200, outcome: "duplicate" });
  expect(await driver.rowsOf(webhookId)).toHaveLength(1);
});

test("Redis does not answer in time: the event does not wait for it", async () => {
  const { guards } = driver.service;
  driver.service.guards = createGuards(guardContext(driver.service.env, driver.service.logger));
  driver.stack.redis.fault({ delayMs: 20_000 });
  const startedAt = performance.now();
  expect(await driver.event(HOLDINGS, driver.nextAccount())).toMatchObject({ status: 200, outcome: "accepted" });
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  driver.service.guards = guards;
});

test.each([
  ["refuses the publish", { status: 500 }],
  ["does not answer the publish", { hang: true, times: 1 }],
  ["is out of its daily quota", { status: 429 }],
])(
  "QStash %s: 200 all the same, the job stays queued, and reconcile publishes it after the grace",
  async (_, publish) => {
    const account = driver.nextAccount();
    driver.stack.qstash.faults.set({ publish });
    const { status, outcome, jobId } = await driver.event(HOLDINGS, account);
    expect([status, outcome]).toEqual([200, "accepted"]);
    expect(await driver.jobOf(jobId)).toMatchObject({ status: "queued", delivery: 1 });
    driver.stack.qstash.faults.set({ publish: { acknowledgeAndLose: true } });

    await letTimePass(jobId, 25_000);
    expect(await reconcile()).toBe(0);
    await letTimePass(jobId, 6_000);
    expect(await reconcile()).toBe(1);
    expect(driver.published.at(-1)?.dedupe).toBe(`${jobId}-2`);
    expect(await reconcile()).toBe(0);
    expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  },
);

test("QStash stores the message and loses its answer: both deliveries together make one run", async () => {
  const account = driver.nextAccount();
  driver.stack.qstash.faults.set({ publish: { storeAndDropAnswer: true, times: 1 } });
  driver.hold("run:admitted").release();
  const { jobId } = await driver.event(HOLDINGS, account);
  await expect.poll(async () => (await driver.jobOf(jobId)).status, { timeout: 10_000 }).toBe("done");
  const calls = driver.callsOf(account).length;
  await letTimePass(jobId, 60_000);
  expect(await reconcile()).toBe(0);
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "overtaken" });
  expect(driver.callsOf(account)).toHaveLength(calls);
});

test.each(["intake:accepted", "intake:settled"] as const)(
  "the function dies at %s: the event is durable, its job is published by reconcile",
  async (point) => {
    const account = driver.nextAccount();
    const webhookId = randomUUID();
    driver.failAt(point, new Error("killed here by the test"));
    expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 500 });
    expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ outcome: "duplicate" });
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced" });
    await driver.app.settled();
    const [job] = await driver.jobs(account);
    await letTimePass(job?.id, 31_000);
    expect(await reconcile()).toBe(1);
    expect(await driver.deliver(job?.id)).toMatchObject({ outcome: "done" });
    expect(await driver.jobs(account)).toHaveLength(1);
  },
);

test("the function dies between its claim and Postgres: the redelivery is accepted", async () => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  driver.failAt("intake:claimed", new Error("killed here by the test"));
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 500 });
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 200, outcome: "accepted" });
});

test("Postgres away while a coalesced event is verified: the answer stands, and the job that covers it runs", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  driver.stack.supabase.fault({ outage: true });
  expect(await driver.event(HOLDINGS, account)).toMatchObject({ status: 200, outcome: "coalesced", jobId });
  await driver.app.settled();
  driver.stack.supabase.clearFaults();
  expect(driver.logged("The row of a coalesced event could not be written")).toHaveLength(1);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
});
