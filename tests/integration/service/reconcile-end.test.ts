import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { addAccounts, ago, empty, names, reconcileTick } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

const DAY = 86_400_000;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 2 });
});
beforeEach(async () => {
  await empty(driver);
  await driver.simulate("POST", "reset", {});
});
afterEach(() => {
  driver.service.clock = Date.now;
});
afterAll(() => driver.app.close());

async function heartbeats(): Promise<number> {
  return (await driver.sql`select from snaptrade_service_state where name = 'reconcile'`).length;
}

describe("pruning", () => {
  test("takes settled events and finished jobs older than the retention, and nothing that is open", async () => {
    await addAccounts(driver, ["acct"]);
    const job = (status: string, days: number) => ({
      work_type: "holdings",
      account_id: "acct",
      reason: "event",
      status,
      created_at: ago(days * DAY),
      finished_at: /queued|running/.test(status) ? null : ago(days * DAY),
      lease_until: status === "running" ? ago(-DAY) : null,
      last_error: `${status} ${days}`,
    });
    const jobs = ["done", "superseded", "gone", "dead"].flatMap((status) => [job(status, 31), job(status, 29)]);
    jobs.push(job("queued", 90), job("running", 90));
    await driver.sql`insert into snaptrade_sync_jobs ${driver.sql(jobs)}`;
    const event = (outcome: string, days: number, finished: boolean) => ({
      webhook_id: `${outcome} ${days} ${finished ? "finished" : "open"}`,
      outcome,
      processed: outcome === "accepted",
      received_at: ago(days * DAY),
      finished_at: finished ? new Date() : null,
    });
    const events = ["accepted", "coalesced", "waiting", "ignored", "unroutable"].flatMap((outcome) => [
      event(outcome, 31, true),
      event(outcome, 29, true),
    ]);
    events.push(
      event("accepted", 90, false),
      event("coalesced", 90, false),
      event("waiting", 31, false),
      event("waiting", 29, false),
    );
    await driver.sql`insert into snaptrade_webhook_events ${driver.sql(events)}`;

    expect(await reconcileTick(driver)).toMatchObject({ pruned: 4 + 5 + 1 });
    const leftJobs = await driver.sql`select last_error as name from snaptrade_sync_jobs order by 1`;
    expect(leftJobs.map(({ name }) => name)).toEqual([
      "dead 29",
      "done 29",
      "gone 29",
      "queued 90",
      "running 90",
      "superseded 29",
    ]);
    const leftEvents = await driver.sql`select webhook_id as name from snaptrade_webhook_events order by 1`;
    expect(leftEvents.map(({ name }) => name)).toEqual([
      "accepted 29 finished",
      "accepted 90 open",
      "coalesced 29 finished",
      "coalesced 90 open",
      "ignored 29 finished",
      "unroutable 29 finished",
      "waiting 29 finished",
      "waiting 29 open",
    ]);
  });

  test("never takes synced data, however old", async () => {
    await driver.app.addUsers();
    const account = await driver.synced("acct-0000");
    await driver.sql`update snaptrade_accounts set created_at = now() - interval '2 years', holdings_synced_at = now() - interval '2 years'`;
    const count = async () =>
      (await driver.sql`select count(*)::int as rows from snaptrade_positions where account_id = ${account}`)[0]?.rows;
    const before = await count();
    await driver.sql`update snaptrade_sync_jobs set finished_at = now() - interval '2 years'`;
    await driver.sql`update snaptrade_webhook_events set received_at = now() - interval '2 years'`;
    expect((await reconcileTick(driver)).pruned).toBe(2);
    expect(before).toBeGreaterThan(0);
    expect(await count()).toBe(before);
  });

  test("goes in batches, a tick each", async () => {
    await driver.sql`
      insert into snaptrade_webhook_events (webhook_id, outcome, received_at, finished_at)
      select 'old-' || i, 'ignored', now() - interval '31 days', now() from generate_series(1, 5200) i`;
    expect([
      (await reconcileTick(driver)).pruned,
      (await reconcileTick(driver)).pruned,
      (await reconcileTick(driver)).pruned,
    ]).toEqual([5_000, 200, 0]);
  });
});

describe("a tick that has no time left", () => {
  test("begins nothing new and still ends with its heartbeat", async () => {
    await driver.app.addUsers();
    await driver.sql`update snaptrade_users set created_at = now() - interval '1 day'`;
    await addAccounts(driver, names("acct", 3));
    await driver.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, reason, delivery, published_at, due_at)
      select 'holdings', account_id, 'event', 1, now() - interval '1 hour', now() - interval '1 hour' from snaptrade_accounts`;
    const taken = driver.hold("reconcile:taken");
    const late = reconcileTick(driver);
    await taken.reached;
    driver.service.clock = () => Date.now() + 41_000;
    taken.release();
    expect(await late).toMatchObject({ republished: 0, listed: 0 });
    expect(await heartbeats()).toBe(1);
    driver.service.clock = Date.now;
    expect(await reconcileTick(driver)).toMatchObject({ republished: 3 });
  });

  test("cuts off what still asks SnapTrade, and leaves that user to the next tick", async () => {
    await driver.app.addUsers();
    await driver.sql`update snaptrade_users set created_at = now() - interval '1 day'`;
    const { deadline } = driver.service;
    const cut = new AbortController();
    driver.service.deadline = () => cut.signal;
    await driver.simulate("POST", "faults", {
      match: { path: "/authorizations" },
      respond: { delayMs: 20_000 },
      times: 1,
    });
    const ticking = reconcileTick(driver);
    await expect.poll(() => driver.stack.snaptrade.state().calls.length).toBe(1);
    cut.abort();
    const tick = await ticking;
    driver.service.deadline = deadline;
    expect(tick).toMatchObject({ listed: 0 });
    const [row] = await driver.sql`select count(*)::int as marked from snaptrade_users where compared_at is not null`;
    expect(row).toEqual({ marked: 0 });
    expect(await heartbeats()).toBe(1);
  });
});

test("while Postgres is away the cron answers 503, and the next tick does the work", async () => {
  driver.stack.supabase.fault({ outage: true });
  await expect(reconcileTick(driver)).rejects.toThrow("503");
  driver.stack.supabase.clearFaults();
  expect(await heartbeats()).toBe(0);
  await reconcileTick(driver);
  expect(await heartbeats()).toBe(1);
});
