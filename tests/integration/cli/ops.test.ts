import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { addUser } from "@/lib/cli/commands/add-user";
import { listDeadJobs, listJobs } from "@/lib/cli/commands/list-jobs";
import { pauseDeliveries, resumeDeliveries } from "@/lib/cli/commands/switch-deliveries";
import { syncAccount } from "@/lib/cli/commands/sync-account";
import type { Service } from "@/lib/service";
import { operator, patient } from "@/tests/integration/cli/operator";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

/** A worker of a busy machine may be put off once by QStash, for ten seconds. */
const RUNS = { timeout: 45_000 };
vi.setConfig({ testTimeout: 60_000 });

let app: ServedApp<{ qstash: true; snaptrade: { accounts: number; rateLimitPerMinute: number } }>;
let service: Service;

beforeAll(async () => {
  app = await serveApp({ qstash: true, snaptrade: { accounts: 4, rateLimitPerMinute: 6000 } });
  service = patient(app.service);
});
afterAll(() => app.close());

const jobs = (status: string) => app.stack.database.sql`
  select id, work_type, account_id, reason, due_at from snaptrade_sync_jobs where status = ${status} order by work_type`;
const countOf = async (status: string) => (await jobs(status)).length;
const shownIds = (document: object) =>
  "jobs" in document && Array.isArray(document.jobs) ? document.jobs.map((job) => job.jobId) : [];

test("while deliveries are paused webhooks are accepted and no job runs; resumed, they all run", async () => {
  const [user] = app.stack.snaptrade.users();
  const paused = await pauseDeliveries(operator(service));
  expect(paused).toMatchObject({ exit: 0, document: { flowControlKey: "snaptrade-handlers", paused: true } });
  expect(app.stack.qstash.state().flowControl).toMatchObject([
    { flowControlKey: "snaptrade-handlers", isPaused: true },
  ]);

  await addUser(
    operator(service),
    { userId: "user-0000", userSecret: user?.userSecret ?? "", authUserId: undefined },
    60_000,
  );
  expect(await app.post({ eventType: "ACCOUNT_HOLDINGS_UPDATED", accountId: "acct-0000" })).toMatchObject({
    status: 200,
  });
  await expect.poll(() => app.stack.qstash.state().waiting, RUNS).toBe(4);
  expect([await countOf("queued"), app.stack.qstash.state().deliveries.length]).toEqual([4, 0]);

  const resumed = await resumeDeliveries(operator(service));
  expect(resumed).toMatchObject({ exit: 0, document: { flowControlKey: "snaptrade-handlers", paused: false } });
  await expect.poll(() => countOf("done"), RUNS).toBe(4);
});

test("a QStash that refuses leaves its reason and what to check", async () => {
  app.stack.qstash.faults.set({ outage: true });
  const report = await pauseDeliveries(operator(service));
  app.stack.qstash.faults.set({});
  expect(report).toMatchObject({
    exit: 1,
    document: { error: expect.stringMatching(/^QStash did not take it: .*QSTASH_URL/) },
  });
});

test("sync queues both work types of an account, by hand and through the budget, and they run", async () => {
  await service.publisher.pause();
  const report = await syncAccount(operator(service), "acct-0001", ["holdings", "transactions"]);
  const queued = await jobs("queued");
  expect(queued).toMatchObject([
    { work_type: "holdings", account_id: "acct-0001", reason: "manual" },
    { work_type: "transactions", account_id: "acct-0001", reason: "manual" },
  ]);
  expect(report).toMatchObject({
    exit: 0,
    document: {
      accountId: "acct-0001",
      unpublished: 0,
      jobs: queued.map((job) => ({ workType: job.work_type, jobId: job.id, outcome: "accepted" })),
    },
  });
  const slots = await service.guards.findSlots(queued.map((job) => ({ jobId: job.id, delivery: 1 })));
  expect(slots).toEqual([expect.any(Number), expect.any(Number)]);

  const again = await syncAccount(operator(service), "acct-0001", ["transactions"]);
  expect(again).toMatchObject({ exit: 0, document: { jobs: [{ jobId: queued[1]?.id, outcome: "already_queued" }] } });
  expect(again.text).toContain(`transactions: was queued already as ${queued[1]?.id}`);
  await service.publisher.resume();
  await expect.poll(() => countOf("done"), RUNS).toBe(6);
});

test("syncing an account that is unknown or gone is a fault that says so, and queues nothing", async () => {
  const unknown = await syncAccount(operator(service), "acct-9999", ["holdings"]);
  expect(unknown).toMatchObject({
    exit: 1,
    document: { error: expect.stringContaining("No account acct-9999 is stored") },
  });
  const { sql } = app.stack.database;
  await sql`update snaptrade_connections set disabled = true`;
  const gone = await syncAccount(operator(service), "acct-0001", ["holdings"]);
  await sql`update snaptrade_connections set disabled = false`;
  expect(gone).toMatchObject({ exit: 1, document: { error: expect.stringContaining("its connection is disabled") } });
  expect(await countOf("queued")).toBe(0);
});

test("jobs are listed newest first, by status and account, and no more than asked for", async () => {
  const all = await listJobs(operator(service), { limit: 500 });
  const stored = await app.stack.database.sql`select id from snaptrade_sync_jobs order by created_at desc, id desc`;
  expect(stored).toHaveLength(6);
  expect(shownIds(all.document)).toEqual(stored.map((row) => row.id));
  expect(shownIds((await listJobs(operator(service), { limit: 2 })).document)).toEqual(
    stored.slice(0, 2).map((row) => row.id),
  );
  expect(shownIds((await listJobs(operator(service), { limit: 9, accountId: "acct-0000" })).document)).toHaveLength(2);
  const queued = await listJobs(operator(service), { limit: 9, status: "queued" });
  expect(queued).toMatchObject({ exit: 0, document: { jobs: [] }, text: "No jobs." });
  expect(all.text.split("\n")[0]).toMatch(/^JOB +WORK +ACCOUNT +STATUS +REASON +ATTEMPTS +CREATED +TIME +ERROR$/);
  expect(all.text).toMatch(/acct-0001 +done +manual +0 +\d+m?s ago +ended \d+m?s ago/);
});

test("what SnapTrade wrote into an error cannot move the cursor of a terminal", async () => {
  await app.stack.database
    .sql`update snaptrade_sync_jobs set status = 'dead', last_error = ${"bad \u001b[2J\u202e\nthing"}
    where account_id = 'acct-0000' and work_type = 'holdings'`;
  const dead = await listDeadJobs(operator(service), { limit: 50 });
  expect(dead.text).toContain("bad  [2J  thing");
  for (const mark of ["\u001b", "\u202e"]) expect(dead.text).not.toContain(mark);
});
