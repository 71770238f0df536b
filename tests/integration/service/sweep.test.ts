import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { SWEEP_PATH } from "@/lib/jobs/publisher";
import {
  addAccounts,
  ago,
  deliverPage,
  empty,
  jobsPublished,
  names,
  pagesOf,
  startSweep,
} from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** A slot of holdings is three calls: 0.96 s. A minute holds the slots that begin from 0 to 60 s. */
const RATE_LIMIT = 250;
const SLOT_MS = (3 * 60_000) / (RATE_LIMIT * 0.75);
const SLOTS_A_MINUTE = Math.floor(60_000 / SLOT_MS) + 1;
const HOUR = 3_600_000;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 2, rateLimitPerMinute: RATE_LIMIT });
});
beforeEach(() => empty(driver));
afterAll(() => driver.app.close());

const swept = () => jobsPublished(driver).map(({ workType, accountId }) => `${workType} ${accountId}`);

async function queued(): Promise<{ account_id: string; reason: string }[]> {
  return driver.sql`select account_id, reason from snaptrade_sync_jobs where status = 'queued' order by account_id`;
}

/** Pages until the sweep ends; Redis's clock goes on as far as QStash would wait. */
async function sweepToTheEnd(): Promise<number> {
  for (let pages = 1; ; pages += 1) {
    driver.stepRedisClock(pagesOf(driver).at(-1)?.delayMs ?? 0);
    if ((await deliverPage(driver)) === "finished") return pages;
  }
}

describe("a sweep", () => {
  test("schedules every stale key once, least recently attempted first, by the same acceptance as intake", async () => {
    await addAccounts(driver, ["never"]);
    await addAccounts(driver, ["late"], { holdings_attempted_at: ago(40 * HOUR), holdings_synced_at: ago(40 * HOUR) });
    await addAccounts(driver, ["later"], { holdings_attempted_at: ago(90 * HOUR), holdings_synced_at: ago(37 * HOUR) });
    await addAccounts(driver, ["both"], { holdings_attempted_at: ago(HOUR), transactions_synced_at: ago(37 * HOUR) });
    expect(await startSweep(driver)).toBe("started");
    expect(await sweepToTheEnd()).toBe(2);
    expect(swept()).toEqual([
      "holdings never",
      "holdings later",
      "holdings late",
      "holdings both",
      "transactions both",
    ]);
    expect(await queued()).toEqual(
      ["both", "both", "late", "later", "never"].map((id) => ({ account_id: id, reason: "sweep" })),
    );

    expect(await startSweep(driver)).toBe("started");
    expect(await sweepToTheEnd()).toBe(1);
    expect(swept()).toHaveLength(5);
  });

  test("leaves fresh, removed, disabled, dead, open and recently half-read keys alone", async () => {
    const [dead, open, running] = await addAccounts(driver, ["dead-job", "open-job", "running-job"]);
    await addAccounts(driver, ["fresh"], { holdings_synced_at: ago(35 * HOUR) });
    await addAccounts(driver, ["half-read"], { holdings_synced_at: ago(40 * HOUR), holdings_retry_at: ago(-HOUR) });
    await addAccounts(driver, ["removed"], { removed_at: ago(HOUR) });
    await addAccounts(driver, ["disabled"], { connection_id: "disabled" });
    await addAccounts(driver, ["connection-removed"], { connection_id: "gone" });
    await addAccounts(driver, ["user-deleted"], { connection_id: "deleted", user_id: "deleted" });
    await driver.sql`update snaptrade_connections set disabled = true where connection_id = 'disabled'`;
    await driver.sql`update snaptrade_connections set removed_at = now() where connection_id = 'gone'`;
    await driver.sql`update snaptrade_users set deleted_at = now() where user_id = 'deleted'`;
    await driver.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, reason, status, finished_at, lease_until) values
        ('holdings', ${dead ?? ""}, 'event', 'dead', now(), null),
        ('holdings', ${open ?? ""}, 'event', 'queued', null, null),
        ('holdings', ${running ?? ""}, 'event', 'running', null, now() + interval '1 minute'),
        ('transactions', 'fresh', 'event', 'dead', now(), null)`;
    await addAccounts(driver, ["stale"], { holdings_synced_at: ago(40 * HOUR), holdings_retry_at: ago(1) });
    await startSweep(driver);
    await sweepToTheEnd();
    expect(swept()).toEqual(["holdings stale"]);
  });

  test("takes at most a minute of the budget a page, and the next page comes when that minute is over", async () => {
    await addAccounts(driver, names("acct", 100));
    await startSweep(driver);
    expect(pagesOf(driver)[0]?.delayMs).toBe(0);
    expect(await deliverPage(driver)).toBe("page");
    const first = jobsPublished(driver);
    expect(first).toHaveLength(SLOTS_A_MINUTE);
    expect(Math.max(...first.map(({ delayMs }) => delayMs))).toBeLessThanOrEqual(60_000);
    expect(await queued()).toHaveLength(SLOTS_A_MINUTE);

    const next = pagesOf(driver).at(-1);
    expect(next?.delayMs).toBeGreaterThan(60_000 - 2 * SLOT_MS);
    expect(next?.delayMs).toBeLessThanOrEqual(60_000);
    driver.stepRedisClock(next?.delayMs ?? 0);
    expect(await deliverPage(driver)).toBe("page");
    expect(new Set(swept())).toEqual(new Set(names("holdings acct", 100)));
    expect(swept()).toHaveLength(100);
    expect(pagesOf(driver).at(-1)?.delayMs).toBe(0);
    expect(await deliverPage(driver)).toBe("finished");
  });

  test("goes on where it was when others have used up the minute", async () => {
    await addAccounts(driver, names("acct", 3));
    const others = names("other", SLOTS_A_MINUTE).map((jobId) => ({ jobId, delivery: 1, calls: 3 }));
    await driver.service.guards.reserveSlots(others, 60_000);
    await startSweep(driver);
    expect(await deliverPage(driver)).toBe("page");
    expect(await queued()).toEqual([]);
    expect(pagesOf(driver).at(-1)).toMatchObject({ body: { page: 1, cursor: null }, delayMs: 15_000 });
    driver.stepRedisClock(15_000);
    await deliverPage(driver);
    expect(swept()).toEqual(names("holdings acct", 3));
  });

  test("keeps a fresh webhook waiting no longer than a minute and its own place", async () => {
    await addAccounts(driver, [...names("acct", 100)]);
    await addAccounts(driver, ["fresh"], { holdings_synced_at: ago(HOUR) });
    await startSweep(driver);
    await deliverPage(driver);
    expect(await driver.event("ACCOUNT_HOLDINGS_UPDATED", "fresh", { userId: "owner" })).toMatchObject({
      outcome: "accepted",
    });
    const published = jobsPublished(driver).at(-1);
    expect(published).toMatchObject({ accountId: "fresh" });
    expect(published?.delayMs).toBeLessThanOrEqual(60_000 + SLOT_MS);
  });
});

describe("two sweeps never run at once", () => {
  test("however many cron calls overlap, one starts", async () => {
    await addAccounts(driver, ["acct"]);
    const started = await Promise.all(Array.from({ length: 6 }, () => startSweep(driver)));
    expect(started.toSorted()).toEqual([...Array(5).fill("already_running"), "started"]);
    expect(pagesOf(driver)).toHaveLength(1);
  });

  test("a sweep whose pages stopped coming is taken over after five minutes, and its late page does nothing", async () => {
    await addAccounts(driver, names("acct", 3));
    await startSweep(driver);
    const [lost] = pagesOf(driver);
    await driver.sql`update snaptrade_service_state set at = at - interval '290 seconds' where name = 'sweep'`;
    expect(await startSweep(driver)).toBe("already_running");
    await driver.sql`update snaptrade_service_state set at = at - interval '11 seconds' where name = 'sweep'`;
    expect(await startSweep(driver)).toBe("started");
    expect(await deliverPage(driver, lost)).toBe("replaced");
    expect(await queued()).toEqual([]);
    await sweepToTheEnd();
    expect(await queued()).toHaveLength(3);
  });

  test("a page that came shows that its sweep lives", async () => {
    await addAccounts(driver, names("acct", 3));
    await startSweep(driver);
    await driver.sql`update snaptrade_service_state set at = at - interval '299 seconds' where name = 'sweep'`;
    await deliverPage(driver);
    expect(await startSweep(driver)).toBe("already_running");
  });

  test("a page that QStash delivers twice schedules nothing twice and is followed by one page", async () => {
    await addAccounts(driver, names("acct", 20));
    await startSweep(driver);
    const [page] = pagesOf(driver);
    await Promise.all([deliverPage(driver, page), deliverPage(driver, page), deliverPage(driver, page)]);
    await deliverPage(driver, page);
    expect(swept().toSorted()).toEqual(names("holdings acct", 20));
    const following = pagesOf(driver).slice(1);
    expect(new Set(following.map(({ dedupe }) => dedupe)).size).toBe(1);
  });
});

describe("what goes wrong during a sweep", () => {
  test("one bad account does not stop a page", async () => {
    await addAccounts(driver, names("acct", 5));
    await driver.sql.unsafe(`
      create function refuse_account() returns trigger language plpgsql as $$ begin raise exception 'no such luck'; end $$;
      create trigger refuse before insert on snaptrade_sync_jobs for each row when (new.account_id = 'acct-0002') execute function refuse_account()`);
    try {
      await startSweep(driver);
      await sweepToTheEnd();
    } finally {
      await driver.sql.unsafe("drop trigger refuse on snaptrade_sync_jobs; drop function refuse_account()");
    }
    expect(swept()).toEqual(["0000", "0001", "0003", "0004"].map((id) => `holdings acct-${id}`));
    expect(driver.logged("An account could not be accepted")).toMatchObject([
      { accountId: "acct-0002", error: "no such luck" },
    ]);
  });

  test("while Redis is away nothing is accepted and the sweep ends, so that the next cron call starts anew", async () => {
    await addAccounts(driver, names("acct", 3));
    await startSweep(driver);
    driver.stack.redis.fault({ outage: true });
    try {
      expect(await deliverPage(driver)).toBe("redis_away");
    } finally {
      driver.stack.redis.clearFaults();
    }
    expect(await queued()).toEqual([]);
    expect(pagesOf(driver)).toHaveLength(1);
    expect(await startSweep(driver)).toBe("started");
    await sweepToTheEnd();
    expect(await queued()).toHaveLength(3);
  });

  test("a page that Postgres does not answer takes no place in the budget, and is done when QStash brings it again", async () => {
    await addAccounts(driver, names("acct", SLOTS_A_MINUTE));
    await startSweep(driver);
    driver.stack.supabase.fault({ outage: true, after: 1, times: 1 });
    await expect(deliverPage(driver)).rejects.toThrow("503");
    driver.stack.supabase.clearFaults();
    await deliverPage(driver);
    expect(swept()).toEqual(names("holdings acct", SLOTS_A_MINUTE));
  });

  test("a page that QStash does not take ends the sweep, and the next cron call starts anew", async () => {
    await addAccounts(driver, names("acct", 3));
    const { faults } = driver.stack.qstash;
    const usual = faults.current;
    faults.set({ publish: { status: 500 } });
    try {
      expect(await startSweep(driver)).toBe("not_published");
    } finally {
      faults.set(usual);
    }
    expect(driver.logged("The next page of the sweep could not be published")).toHaveLength(1);
    expect(await driver.redis("HGET", "snaptrade:metrics", "qstash_publish_failures")).toBe("1");
    expect(await startSweep(driver)).toBe("started");
  });

  test("a body that is no page of a sweep is not asked for again", async () => {
    const answer = await driver.asQStash(SWEEP_PATH, JSON.stringify({ sweepId: "x", page: -1, cursor: null }));
    expect(answer.status).toBe(489);
    expect(answer.headers.get("upstash-nonretryable-error")).toBe("true");
  });
});
