import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { listDeadJobs } from "@/lib/cli/commands/list-jobs";
import { replayAll, replayJobs } from "@/lib/cli/commands/replay-jobs";
import { guardContext } from "@/lib/composition";
import { AWAY } from "@/lib/guards/redis-scripts";
import type { Service } from "@/lib/service";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { operator, patient } from "@/tests/integration/cli/operator";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

const ACCOUNTS = 24;

/** A worker of a busy machine may be put off once by QStash, for ten seconds. */
const RUNS = { timeout: 45_000 };
vi.setConfig({ testTimeout: 60_000 });

let app: ServedApp<{ qstash: true; snaptrade: { accounts: number; rateLimitPerMinute: number } }>;
let service: Service;

beforeAll(async () => {
  app = await serveApp({ qstash: true, snaptrade: { accounts: ACCOUNTS, rateLimitPerMinute: 6000 } });
  service = patient(app.service);
  await app.addUsers();
  const { sql } = app.stack.database;
  await sql`insert into snaptrade_connections (connection_id, user_id) select replace(user_id, 'user', 'conn'), user_id from snaptrade_users`;
  for (let n = 0; n < ACCOUNTS; n += 1) {
    const owner = String(Math.floor(n / 2)).padStart(4, "0");
    await sql`insert into snaptrade_accounts (account_id, connection_id, user_id, detail_read_at)
      values (${accountId(n)}, ${`conn-${owner}`}, ${`user-${owner}`}, now())`;
  }
});
beforeEach(() => app.stack.database.sql`delete from snaptrade_sync_jobs`);
afterEach(() => service.publisher.resume());
afterAll(() => app.close());

async function openJobs(): Promise<number> {
  const { sql } = app.stack.database;
  const [row] = await sql`select count(*)::int as n from snaptrade_sync_jobs where status in ('queued', 'running')`;
  return row?.n;
}

const accountId = (n: number) => `acct-${String(n).padStart(4, "0")}`;
const jobOf = async (id: string) =>
  (await app.stack.database.sql`select * from snaptrade_sync_jobs where id = ${id}`)[0];

/** Jobs of the first accounts, dead. */
async function deadJobs(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  const rows = ids.map((id, n) => ({
    id,
    work_type: "holdings",
    account_id: accountId(n),
    status: "dead",
    reason: "event",
    attempts: 8,
    delivery: 8,
    last_error: "positions: SnapTrade answered 500",
    finished_at: new Date(),
  }));
  await app.stack.database.sql`insert into snaptrade_sync_jobs ${app.stack.database.sql(rows)}`;
  return ids;
}

function fault(match: object, respond: object): Promise<Response> {
  const body = JSON.stringify({ match, respond, times: 1 });
  return fetch(`${app.stack.snaptrade.url}/_sim/faults`, { method: "POST", body });
}

test("a job that SnapTrade made dead is shown with its reason, and runs once it is replayed", async () => {
  await fault({ path: "/accounts/{id}/positions/all", accountId: "acct-0000" }, { status: 402 });
  const { jobId } = await app.post({ eventType: "ACCOUNT_HOLDINGS_UPDATED", accountId: "acct-0000" });
  await expect.poll(async () => (await jobOf(jobId ?? ""))?.status, RUNS).toBe("dead");

  const dead = await listDeadJobs(operator(service), { limit: 50 });
  expect(dead).toMatchObject({ exit: 0, document: { jobs: [{ jobId, status: "dead", accountId: "acct-0000" }] } });
  expect(dead.text).toMatch(/402.*\n\nOnce the reason is mended: npm run ops -- replay JOB/);

  const report = await replayJobs(operator(service), [jobId ?? ""]);
  expect(report).toMatchObject({ exit: 0, document: { queued: [jobId], superseded: [], notDead: [], unknown: [] } });
  expect(report.text).toBe("1 job queued again.");
  await expect.poll(async () => (await jobOf(jobId ?? ""))?.status, RUNS).toBe("done");
  expect(await jobOf(jobId ?? "")).toMatchObject({ reason: "replay", attempts: 0 });
});

test("a replay that meets a queued job of its key is superseded by it", async () => {
  await service.publisher.pause();
  const [dead = ""] = await deadJobs(1);
  const { jobId: queued } = await app.post({ eventType: "ACCOUNT_HOLDINGS_UPDATED", accountId: "acct-0000" });
  const report = await replayJobs(operator(service), [dead]);
  expect(report).toMatchObject({ exit: 0, document: { queued: [], superseded: [dead] } });
  expect(report.text).toContain("1 superseded: a queued job of the key reads for them.");
  expect((await jobOf(dead))?.status).toBe("superseded");
  expect((await jobOf(queued ?? ""))?.status).toBe("queued");
});

test("a replay that meets a run of its key waits behind it as the trailing job, and gives its slot back", async () => {
  const [dead = ""] = await deadJobs(1);
  const running = {
    id: randomUUID(),
    work_type: "holdings",
    account_id: "acct-0000",
    status: "running",
    reason: "event",
  };
  const lease = { delivery: 1, fence: 1, lease_until: new Date(Date.now() + 60_000), started_at: new Date() };
  await app.stack.database.sql`insert into snaptrade_sync_jobs ${app.stack.database.sql({ ...running, ...lease })}`;
  const published = app.stack.qstash.state().published;
  expect(await replayJobs(operator(service), [dead])).toMatchObject({ exit: 0, document: { queued: [dead] } });
  expect(await jobOf(dead)).toMatchObject({ status: "queued", delivery: 8 });
  expect(app.stack.qstash.state().published).toBe(published);
  expect(await service.guards.findSlots([{ jobId: dead, delivery: 9 }])).toEqual([null]);
});

test("ids that are no dead job are told, and the others are replayed", async () => {
  const [dead = "", done = ""] = await deadJobs(2);
  await app.stack.database.sql`update snaptrade_sync_jobs set status = 'done' where id = ${done}`;
  const unknown = randomUUID();
  const report = await replayJobs(operator(service), [dead, done, unknown, dead]);
  expect(report).toMatchObject({ exit: 1, document: { queued: [dead], notDead: [done], unknown: [unknown] } });
  expect(report.text).toContain(`${done} is not dead`);
  expect(report.text).toContain(`${unknown} is no job that is stored`);
});

test("replay --all replays every dead job, each under the delivery whose slot it was given", async () => {
  await service.publisher.pause();
  const ids = await deadJobs(5);
  const report = await replayAll(operator(service));
  expect(report).toMatchObject({ exit: 0, document: { superseded: [], notDead: [], unpublished: 0 } });
  expect(report.text).toBe("5 jobs queued again.");
  const slots = await service.guards.findSlots(ids.map((jobId) => ({ jobId, delivery: 9 })));
  expect(slots).toEqual(ids.map(() => expect.any(Number)));
  await service.publisher.resume();
  await expect.poll(openJobs, RUNS).toBe(0);
  expect(await app.stack.database.sql`select distinct status from snaptrade_sync_jobs`).toEqual([{ status: "done" }]);
});

test("replay --all takes at most a minute of the budget at a time, and waits for the rest", async () => {
  await service.publisher.pause();
  const ids = await deadJobs(ACCOUNTS);
  let now = Date.now();
  // 20 calls a minute, three quarters of them ours: a minute holds 15 calls, five jobs of three.
  const context = guardContext(service.env, service.logger, 20_000);
  const settings = { ...context.settings, rateLimit: 20 };
  const guards = createGuards({ ...context, settings, clock: () => now });
  const tools = operator({ ...service, guards }, (ms) => {
    now += ms;
  });
  const began = now;
  const report = await replayAll(tools);
  expect(report).toMatchObject({ exit: 0, document: { queued: expect.arrayContaining(ids) } });
  // 24 jobs are 72 calls, 288 s of the budget; all but the last minute of it must have been waited for.
  expect((now - began) / 1000).toBeGreaterThanOrEqual(288 - 60 - 12);
  expect((now - began) / 1000).toBeLessThan(288);
  expect(tools.notes[0]).toMatch(/^\d+ jobs to go; the next minute of the budget is taken, waiting$/);
});

test("a job that dies again while replay --all goes on is not replayed twice", async () => {
  await service.publisher.pause();
  const ids = await deadJobs(3);
  const { store } = service;
  let calls = 0;
  const replay: typeof store.replay = async (request) => {
    calls += 1;
    if (calls > 3) throw new Error("replayed more often than there are jobs");
    const answer = await store.replay(request);
    await app.stack.database
      .sql`update snaptrade_sync_jobs set status = 'dead', finished_at = now() where id = any(${ids})`;
    return answer;
  };
  const report = await replayAll(operator({ ...service, store: { ...store, replay } }));
  expect(report).toMatchObject({ exit: 0, text: "3 jobs queued again." });
  expect(calls).toBe(1);
});

test("while Redis is away no job is replayed", async () => {
  const [dead = ""] = await deadJobs(1);
  const guards = { ...service.guards, reserveSlots: async () => AWAY };
  const report = await replayAll(operator({ ...service, guards }));
  expect(report).toMatchObject({
    exit: 1,
    document: { queued: [], error: expect.stringContaining("Redis gave no answer") },
  });
  expect((await jobOf(dead))?.status).toBe("dead");
});

test("a replay that QStash does not take stays queued, and says so", async () => {
  const [dead = ""] = await deadJobs(1);
  app.stack.qstash.faults.set({ outage: true });
  const report = await replayJobs(operator(service), [dead]);
  app.stack.qstash.faults.set({});
  expect(report).toMatchObject({ exit: 0, document: { queued: [dead], unpublished: 1 } });
  expect(report.text).toContain("1 of them QStash did not take: reconcile publishes them.");
  expect((await jobOf(dead))?.status).toBe("queued");
});
