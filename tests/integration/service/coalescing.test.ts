import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const queuedKey = (account: string) => `snaptrade:account:queued:holdings:${account}`;
const webhookKey = (webhookId: string) => `snaptrade:webhook:${webhookId}`;

async function statuses(account: string): Promise<string[]> {
  return (await driver.jobs(account)).map(({ status }) => status);
}

test("twenty events that arrive while an account is being read lead to exactly one more run", async () => {
  const account = await driver.synced(driver.nextAccount());
  const first = await driver.event(HOLDINGS, account);
  const reading = driver.hold("run:read");
  const run = driver.deliver(first.jobId);
  await reading.reached;
  driver.stack.snaptrade.bumpAccount(account, "holdings");

  const answers = await Promise.all(Array.from({ length: 20 }, () => driver.event(HOLDINGS, account)));
  await driver.app.settled();
  expect(answers.filter(({ outcome }) => outcome === "accepted")).toHaveLength(1);
  expect(answers.filter(({ outcome }) => outcome === "coalesced")).toHaveLength(19);
  const trailing = (await driver.jobs(account)).find(({ status }) => status === "queued");
  expect(trailing).toMatchObject({ delivery: 0 });
  expect(driver.published.filter(({ dedupe }) => dedupe.startsWith(trailing?.id ?? "?"))).toEqual([]);

  reading.release();
  expect(await run).toMatchObject({ status: 200, outcome: "done" });
  expect(driver.published.at(-1)?.dedupe).toBe(`${trailing?.id}-1`);
  expect(await driver.deliver(trailing?.id)).toMatchObject({ outcome: "done" });
  expect(await statuses(account)).toEqual(["done", "done", "done"]);
  const [stored] = await driver.sql`
    select count(*)::int as rows from snaptrade_positions where account_id = ${account} and units::text like '2.00000000000000000%'`;
  expect(stored?.rows).toBe(1);
});

test("events before the reading begins coalesce onto the queued job, and one run covers them all", async () => {
  const account = await driver.synced(driver.nextAccount());
  const first = await driver.event(HOLDINGS, account);
  const ids = Array.from({ length: 5 }, () => randomUUID());
  for (const webhookId of ids) {
    expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({
      status: 200,
      outcome: "coalesced",
      jobId: first.jobId,
    });
  }
  await driver.app.settled();
  expect(await driver.deliver(first.jobId)).toMatchObject({ outcome: "done" });
  expect(await statuses(account)).toEqual(["done", "done"]);
  for (const id of ids) {
    const [row] = await driver.rowsOf(id);
    expect(row).toMatchObject({ outcome: "coalesced", job_ids: [first.jobId], processed: true });
    expect(row?.finished_at).not.toBeNull();
  }
});

// B25
test("one change upstream that comes as several different events makes one job a work type", async () => {
  const account = await driver.synced(driver.nextAccount());
  const before = (await driver.jobs(account)).length;
  const types = [HOLDINGS, "TRADE_UPDATE", "ACCOUNT_TRANSACTIONS_INITIAL_UPDATE", "ACCOUNT_TRANSACTIONS_UPDATED"];
  const ids = [...types, HOLDINGS].map((eventType) => ({ eventType, webhookId: randomUUID() }));
  await Promise.all(ids.map(({ eventType, webhookId }) => driver.event(eventType, account, { webhookId })));
  await driver.app.settled();
  const jobs = (await driver.jobs(account)).slice(before);
  expect(jobs.map(({ work_type }) => work_type).sort()).toEqual(["holdings", "transactions"]);
  for (const { eventType, webhookId } of ids) {
    const work = eventType.includes("TRANSACTIONS") ? "transactions" : "holdings";
    const covering = jobs.find(({ work_type }) => work_type === work)?.id;
    expect(await driver.rowsOf(webhookId), eventType).toMatchObject([{ job_ids: [covering] }]);
  }
});

test("an event between admission and begin is covered by the job that has not begun", async () => {
  const account = await driver.synced(driver.nextAccount());
  const first = await driver.event(HOLDINGS, account);
  const admitted = driver.hold("run:admitted");
  const run = driver.deliver(first.jobId);
  await admitted.reached;
  expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId: first.jobId });
  await driver.app.settled();
  admitted.release();
  expect(await run).toMatchObject({ outcome: "done" });
  expect(await statuses(account)).toEqual(["done", "done"]);
});

test("an event between begin and unqueue, which Redis calls coalesced, is accepted in full by the verification", async () => {
  const account = await driver.synced(driver.nextAccount());
  const first = await driver.event(HOLDINGS, account);
  const begun = driver.hold("run:begun");
  const run = driver.deliver(first.jobId);
  await begun.reached;
  const webhookId = randomUUID();
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ outcome: "coalesced" });
  await driver.app.settled();
  begun.release();
  expect(await run).toMatchObject({ outcome: "done" });
  const [row] = await driver.rowsOf(webhookId);
  expect(row).toMatchObject({ outcome: "accepted", processed: true });
  expect(row?.job_ids).not.toEqual([first.jobId]);
  expect(await driver.deliver(row?.job_ids[0])).toMatchObject({ outcome: "done" });
});

test("an event between unqueue and the first call makes the trailing job, and the next one coalesces onto that", async () => {
  const account = await driver.synced(driver.nextAccount());
  const first = await driver.event(HOLDINGS, account);
  const unqueued = driver.hold("run:unqueued");
  const run = driver.deliver(first.jobId);
  await unqueued.reached;
  const trailing = await driver.event(HOLDINGS, account);
  expect(trailing).toMatchObject({ outcome: "accepted" });
  expect(trailing.jobId).not.toBe(first.jobId);
  expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId: trailing.jobId });
  await driver.app.settled();
  unqueued.release();
  expect(await run).toMatchObject({ outcome: "done" });
  expect(await driver.redis("GET", queuedKey(account))).toBe(trailing.jobId);
  expect(await driver.deliver(trailing.jobId)).toMatchObject({ outcome: "done" });
});

test("an event between commit and release gets a job of its own at once, which the lock that still stands does not stop", async () => {
  const account = await driver.synced(driver.nextAccount());
  const first = await driver.event(HOLDINGS, account);
  const committed = driver.hold("run:committed");
  const run = driver.deliver(first.jobId);
  await committed.reached;
  const second = await driver.event(HOLDINGS, account);
  expect(second).toMatchObject({ outcome: "accepted" });
  expect(driver.published.at(-1)?.dedupe).toBe(`${second.jobId}-1`);
  const reading = driver.hold("run:read");
  const other = driver.deliver(second.jobId);
  await reading.reached;

  committed.release();
  expect(await run).toMatchObject({ outcome: "done" });
  expect(await driver.redis("GET", `snaptrade:account:lock:holdings:${account}`)).not.toBeNull();
  reading.release();
  expect(await other).toMatchObject({ outcome: "done" });
  expect(await driver.redis("GET", `snaptrade:account:lock:holdings:${account}`)).toBeNull();
});

test("a queued key that names a job which is no longer queued costs no update: accepted in full, answered coalesced", async () => {
  const account = await driver.synced(driver.nextAccount());
  const [done] = await driver.jobs(account);
  await driver.redis("SET", queuedKey(account), done?.id ?? "", "EX", 60);
  const webhookId = randomUUID();
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ outcome: "coalesced", jobId: done?.id });
  await driver.app.settled();

  const [row] = await driver.rowsOf(webhookId);
  expect(row).toMatchObject({ outcome: "accepted", processed: true, finished_at: null });
  expect(driver.published.at(-1)?.dedupe).toBe(`${row?.job_ids[0]}-1`);
  expect(await driver.deliver(row?.job_ids[0])).toMatchObject({ outcome: "done" });
});

test("a job that its delivery finds gone leaves no queued key behind: the next event does not stand on it", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.event("ACCOUNT_REMOVED", account);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "gone" });
  expect(await driver.redis("GET", `snaptrade:account:queued:holdings:${account}`)).toBeNull();
});

test("a pending claim of somebody else proves nothing: the event is accepted", async () => {
  const account = await driver.synced(driver.nextAccount());
  const webhookId = randomUUID();
  await driver.redis("SET", webhookKey(webhookId), "pending:somebody", "EX", 60);
  await driver.redis("SET", queuedKey(account), "pending:somebody", "EX", 60);
  const accepted = await driver.event(HOLDINGS, account, { webhookId });
  expect(accepted).toMatchObject({ status: 200, outcome: "accepted" });
  expect(await driver.redis("GET", webhookKey(webhookId))).toBe("accepted");
  expect(await driver.redis("GET", queuedKey(account))).toBe(accepted.jobId);
});

test("settle never writes over another event's claim", async () => {
  const account = await driver.synced(driver.nextAccount());
  const accepted = driver.hold("intake:accepted");
  const first = driver.event(HOLDINGS, account);
  await accepted.reached;
  const claimed = driver.hold("intake:claimed");
  const second = driver.event(HOLDINGS, account);
  await claimed.reached;
  const claim = await driver.redis("GET", queuedKey(account));

  accepted.release();
  const { jobId } = await first;
  expect(claim).toMatch(/^pending:/);
  expect(await driver.redis("GET", queuedKey(account))).toBe(claim);
  claimed.release();
  expect(await second).toMatchObject({ outcome: "coalesced", jobId });
  expect(await driver.redis("GET", queuedKey(account))).toBe(jobId);
});

test("settle after an unqueue leaves the queued key absent: the job that it would name is already reading", async () => {
  const account = await driver.synced(driver.nextAccount());
  const accepted = driver.hold("intake:accepted");
  const first = driver.event(HOLDINGS, account);
  await accepted.reached;
  const [, job] = await driver.jobs(account);
  const reading = driver.hold("run:unqueued");
  const run = driver.deliver(job?.id);
  await reading.reached;

  accepted.release();
  expect(await first).toMatchObject({ outcome: "accepted", jobId: job?.id });
  expect(await driver.redis("GET", queuedKey(account))).toBeNull();
  reading.release();
  expect(await run).toMatchObject({ outcome: "done" });
});

test("an event that says a part failed upstream never takes the short cut", async () => {
  const account = await driver.synced(driver.nextAccount());
  const first = await driver.event(HOLDINGS, account);
  const details = { positions: { success: true }, balances: { success: false, error: "timeout" } };
  const webhookId = randomUUID();
  const cost = await driver.costOf(async () => {
    expect(await driver.event(HOLDINGS, account, { webhookId, details })).toMatchObject({
      outcome: "coalesced",
      jobId: first.jobId,
    });
  });
  expect(cost).toMatchObject({ redis: 2, postgres: 1, qstash: 0 });
  const [stored] = await driver.sql`select failed_parts from snaptrade_accounts where account_id = ${account}`;
  expect(stored?.failed_parts).toEqual(["balances"]);
  expect(await driver.rowsOf(webhookId)).toHaveLength(1);
});

test("while a part has failed upstream no event takes the short cut: the one that says all is well must reach its row", async () => {
  const account = await driver.synced(driver.nextAccount());
  const bad = { success: false, error: "timeout" };
  const good = { success: true };
  const { jobId } = await driver.event(HOLDINGS, account);
  expect(await driver.redis("GET", queuedKey(account))).toBe(jobId);
  await driver.event(HOLDINGS, account, { details: { positions: good, balances: bad, orders: good } });
  // It says nothing about parts: the failed one stays so.
  await driver.event(HOLDINGS, account);
  driver.stack.supabase.fault({ outage: true });
  const webhookId = randomUUID();
  const details = { positions: good, balances: good, orders: good };
  expect(await driver.event(HOLDINGS, account, { webhookId, details })).toMatchObject({ status: 503 });
  driver.stack.supabase.clearFaults();
  expect(await driver.event(HOLDINGS, account, { webhookId, details })).toMatchObject({ outcome: "coalesced", jobId });
  const [stored] = await driver.sql`select failed_parts from snaptrade_accounts where account_id = ${account}`;
  expect(stored?.failed_parts).toEqual([]);
  expect(await driver.redis("GET", queuedKey(account))).toBe(jobId);
});

test("nor where an event that knew nothing of the failed part settles after the one that told of it", async () => {
  const account = await driver.synced(driver.nextAccount());
  const details = { positions: { success: true }, balances: { success: false, error: "timeout" } };
  const [failed, plain] = [driver.hold("intake:claimed"), driver.hold("intake:claimed")];
  const settling = [driver.hold("intake:accepted"), driver.hold("intake:accepted")];
  const first = driver.event(HOLDINGS, account, { details });
  await failed.reached;
  const second = driver.event(HOLDINGS, account);
  await plain.reached;
  plain.release();
  await settling[0]?.reached;
  failed.release();
  await settling[1]?.reached;
  for (const gate of settling) gate.release();
  await Promise.all([first, second]);
  expect(await driver.redis("GET", queuedKey(account))).toBeNull();
});

test("the runs of two jobs of one key begin no closer than the spacing, and the second waits in QStash, not in a function", async () => {
  const { limits } = driver.service.env;
  const spacingMs = limits.minRunSpacingMs;
  limits.minRunSpacingMs = 50_000;
  const account = await driver.synced(driver.nextAccount());
  const [first] = await driver.jobs(account);
  const { jobId } = await driver.event(HOLDINGS, account);
  const second = await driver.jobOf(jobId);
  expect(second.due_at.getTime() - (first?.started_at?.getTime() ?? 0)).toBe(50_000);
  expect(driver.published.at(-1)).toMatchObject({ dedupe: `${jobId}-1` });
  expect(driver.published.at(-1)?.delayMs).toBeGreaterThan(10_000);
  expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId });
  limits.minRunSpacingMs = spacingMs;
});
