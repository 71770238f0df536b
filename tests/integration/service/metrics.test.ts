import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { empty, names } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
/** The names, types and labels that dashboards ask for. */
const METRICS = {
  snaptrade_webhook_events_total: "counter",
  snaptrade_duplicate_webhooks_total: "counter",
  snaptrade_jobs_coalesced_total: "counter",
  snaptrade_active_lock_skips_total: "counter",
  snaptrade_qstash_publish_failures_total: "counter",
  snaptrade_qstash_retries_total: "counter",
  snaptrade_provider_responses_total: "counter",
  snaptrade_provider_429_total: "counter",
  snaptrade_jobs_deferred_total: "counter",
  snaptrade_runs_total: "counter",
  snaptrade_jobs: "gauge",
  snaptrade_oldest_queued_seconds: "gauge",
  snaptrade_budget_used_ratio: "gauge",
};

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 4 });
});
beforeEach(async () => {
  await empty(driver);
  await driver.simulate("POST", "reset", {});
  await driver.app.addUsers();
});
afterAll(() => driver.app.close());

async function page() {
  const headers = { authorization: `Bearer ${driver.service.env.cronSecret}` };
  const response = await fetch(`${driver.app.url}/api/metrics`, { headers });
  expect(response.status).toBe(200);
  return { headers: response.headers, text: await response.text() };
}

/** The samples by name and label, `snaptrade_runs_total{outcome="done"}` shortened to `runs done`. */
async function samples(): Promise<Record<string, number>> {
  await driver.app.settled();
  const lines = (await page()).text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, label, value] = /^snaptrade_(\w+?)(?:_total)?(?:\{\w+="(\w+)"\})? (\S+)$/.exec(line) ?? [];
      return [label === undefined ? name : `${name} ${label}`, Number(value)];
    }),
  );
}

test("the page is Prometheus text that nobody keeps, and for the bearer alone", async () => {
  const { headers } = await page();
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-store");
  const cost = await driver.costOf(async () => {
    const refused = await fetch(`${driver.app.url}/api/metrics`);
    expect(refused.status).toBe(401);
    expect(refused.headers.get("cache-control")).toBe("no-store");
  });
  expect(cost).toEqual({ redis: 0, postgres: 0, qstash: 0, snaptrade: 0 });
});

test("every documented metric is there from the start, under its name and type", async () => {
  const types = [...(await page()).text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]);
  expect(Object.fromEntries(types)).toEqual(METRICS);
});

test("each authentic event is counted once, under the outcome that was answered", async () => {
  const event = (fields: Record<string, unknown> = {}) => driver.event(HOLDINGS, "acct-0000", fields);
  const webhookId = randomUUID();
  const queuedKey = "snaptrade:account:queued:holdings:acct-0000";
  const { jobId } = await event({ webhookId });
  await event({ webhookId });
  await driver.redis("DEL", `snaptrade:webhook:${webhookId}`, queuedKey);
  expect(await event({ webhookId })).toMatchObject({ outcome: "duplicate", jobId });
  await event();
  await driver.app.settled();
  await driver.redis("DEL", queuedKey);
  expect(await event()).toMatchObject({ outcome: "coalesced", jobId });
  await event({ eventType: "SOMETHING_NEW" });
  await event({ eventTimestamp: "2020-01-01T00:00:00Z" });
  await event({ accountId: "no/account" });
  await event({ accountId: "unknown", userId: "unknown", brokerageAuthorizationId: "unknown" });
  expect(await samples()).toMatchObject({
    "webhook_events accepted": 1,
    "webhook_events duplicate": 2,
    "webhook_events coalesced": 2,
    "webhook_events ignored": 1,
    "webhook_events expired": 1,
    "webhook_events unroutable": 1,
    "webhook_events waiting": 1,
    duplicate_webhooks: 2,
    jobs_coalesced: 2,
  });
});

test("an event that is not authentic is counted nowhere", async () => {
  const before = await samples();
  await fetch(`${driver.app.url}/api/snaptrade/webhook`, { method: "POST", body: "{}", headers: { signature: "x" } });
  expect(await samples()).toEqual(before);
});

describe("deliveries", () => {
  test("are counted by how they ended, with the answers of SnapTrade", async () => {
    const { jobId } = await driver.event(HOLDINGS, "acct-0000");
    const reading = driver.hold("run:read");
    const run = driver.deliver(jobId);
    await reading.reached;
    expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "already_active" });
    reading.release();
    expect(await run).toMatchObject({ outcome: "done" });
    expect(await driver.deliver(jobId)).toMatchObject({ outcome: "overtaken" });
    expect(await samples()).toMatchObject({
      "runs done": 1,
      "runs already_active": 1,
      "runs overtaken": 1,
      active_lock_skips: 1,
      qstash_retries: 1,
      "provider_responses 200": driver.callsOf("acct-0000").length,
      provider_429: 0,
    });
  });

  test("that are put back are counted by reason, before they begin as after", async () => {
    const [first, second] = [await driver.event(HOLDINGS, "acct-0000"), await driver.event(HOLDINGS, "acct-0001")];
    await driver.fault({ accountId: "acct-0000" }, { status: 429, headers: { "Retry-After": "30" } });
    expect(await driver.deliver(first.jobId)).toMatchObject({ outcome: "deferred" });
    expect(await driver.deliver(second.jobId)).toMatchObject({ outcome: "deferred" });
    const counted = await samples();
    expect(counted).toMatchObject({ "jobs_deferred cooldown": 2, "runs deferred": 2, provider_429: 1 });
    expect(counted["provider_responses 429"]).toBe(1);

    await driver.deliverMessage({
      jobId: second.jobId ?? "",
      workType: "holdings",
      accountId: "acct-0001",
      delivery: 1,
    });
    expect(await samples()).toMatchObject({ "jobs_deferred cooldown": 2, "runs deferred": 2, "runs overtaken": 1 });
    driver.stepRedisClock(60_000);
  });

  test("that QStash did not take are counted", async () => {
    const { faults } = driver.stack.qstash;
    const usual = faults.current;
    faults.set({ publish: { status: 500 } });
    await driver.event(HOLDINGS, "acct-0000");
    faults.set(usual);
    expect(await samples()).toMatchObject({ qstash_publish_failures: 1 });
  });
});

test("the gauges say what is open, dead and used", async () => {
  await driver.event(HOLDINGS, "acct-0000");
  await driver.event(HOLDINGS, "acct-0001");
  await driver.sql`
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, lease_until, finished_at) values
      ('transactions', 'acct-0000', 'event', 'running', now(), null), ('holdings', 'acct-0001', 'event', 'dead', null, now())`;
  await driver.sql`update snaptrade_sync_jobs set created_at = now() - interval '90 seconds' where account_id = 'acct-0001'`;
  const before = await samples();
  expect(before).toMatchObject({ "jobs queued": 2, "jobs running": 1, "jobs dead": 1 });
  expect(before.oldest_queued_seconds).toBeGreaterThanOrEqual(90);
  expect(before.oldest_queued_seconds).toBeLessThan(120);
  await driver.service.guards.reserveSlots(
    names("job", 5_000).map((jobId) => ({ jobId, delivery: 1, calls: 3 })),
    60_000,
  );
  const after = await samples();
  expect(before.budget_used_ratio).toBeLessThan(0.1);
  expect(after.budget_used_ratio).toBeGreaterThan(before.budget_used_ratio ?? 1);
  expect(after.budget_used_ratio).toBeLessThanOrEqual(1);
});

describe("what cannot be read is left out, for a zero would be a lie", () => {
  test("without Redis: no counter, no budget; the jobs stay", async () => {
    driver.stack.redis.fault({ outage: true });
    const { text } = await page();
    driver.stack.redis.clearFaults();
    expect(text).not.toMatch(/_total|budget/);
    expect(text).toContain('snaptrade_jobs{status="queued"} 0');
  });

  test("without Postgres: no job, no age; the counters stay", async () => {
    driver.stack.supabase.fault({ outage: true });
    const { text } = await page();
    driver.stack.supabase.clearFaults();
    expect(text).not.toMatch(/snaptrade_jobs\{|oldest_queued/);
    expect(text).toContain('snaptrade_webhook_events_total{outcome="accepted"} 0');
  });
});
