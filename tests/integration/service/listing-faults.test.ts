import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { isAway } from "@/lib/guards/redis-scripts";
import type { Provider } from "@/lib/provider/provider";
import { empty, jobsPublished, names, reconcileTick, timePasses } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const NOT_LISTED = "A user's accounts could not be listed";
const DAY_MS = 86_400_000;

let driver: Driver;
let provider: Provider;

beforeAll(async () => {
  driver = await driveService({ accounts: 4, rateLimitPerMinute: 250 });
  ({ provider } = driver.service);
});
beforeEach(async () => {
  await empty(driver);
  await driver.simulate("POST", "reset", {});
  await driver.app.addUsers();
  await timePasses(driver, DAY_MS);
});
afterEach(() => {
  driver.service.provider = provider;
});
afterAll(() => driver.app.close());

const callsMade = () => driver.stack.snaptrade.state().calls.map(({ path }) => path);
const fault = (path: string, respond: object, times = 1) =>
  driver.simulate("POST", "faults", { match: { path }, respond, times });

async function comparedUsers(): Promise<string[]> {
  const rows = await driver.sql`select user_id from snaptrade_users where compared_at is not null order by 1`;
  return rows.map(({ user_id }) => user_id);
}

async function heartbeats(): Promise<number> {
  return (await driver.sql`select from snaptrade_service_state where name = 'reconcile'`).length;
}

test("no two calls free: nobody is listed, and they are asked for again by the next tick", async () => {
  const others = names("other", 5).map((jobId) => ({ jobId, delivery: 1, calls: 3 }));
  await driver.service.guards.reserveSlots(others, 60_000);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
  expect(callsMade()).toEqual([]);
  expect(await comparedUsers()).toEqual([]);
  await timePasses(driver, 30_000);
  expect((await reconcileTick(driver)).listed).toBeGreaterThan(0);
});

test("calls that other runs did not make begin no listing in a backlog: what it finds would get none", async () => {
  const { guards } = driver.service;
  const [first, ...others] = names("other", 40).map((jobId) => ({ jobId, delivery: 1, calls: 3 }));
  if (first === undefined) throw new Error("There is no job");
  await guards.reserveSlots([first, ...others], 120_000);
  const job = { jobId: first.jobId, workType: "holdings", accountId: "other", delivery: 1 } as const;
  const run = { job, token: "token", retried: 0, replace: false, calls: 3, counts: {} };
  const admitted = await guards.claimAccountLock(run);
  if (isAway(admitted) || admitted.kind !== "go") throw new Error("The run was not admitted");
  const unmade = { calls: admitted.calls, slotAt: admitted.slotAt };
  await guards.releaseAccountLock({ ...run, began: true, closed: false, unused: null, unmade, publish: [] });
  expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
  expect(callsMade()).toEqual([]);
  expect((await guards.reserveCallsNow(2, { spares: true })).calls).toBe(2);
});

test("a user whose keys got no slot is listed again by the next tick, and they are queued then", async () => {
  const { guards } = driver.service;
  driver.service.guards = { ...guards, reserveSlots: async () => [] };
  expect((await reconcileTick(driver)).listed).toBeGreaterThan(0);
  driver.service.guards = guards;
  expect(await comparedUsers()).toEqual([]);
  expect(jobsPublished(driver)).toEqual([]);
  await timePasses(driver, 30_000);
  await reconcileTick(driver);
  expect(await comparedUsers()).not.toEqual([]);
  expect(jobsPublished(driver)).not.toEqual([]);
});

test("a listing that SnapTrade refuses is not tried again the same day, and another user's goes on", async () => {
  await fault("/authorizations", { status: 500 });
  expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
  await timePasses(driver, 30_000);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  expect(driver.logged(NOT_LISTED)).toMatchObject([{ userId: "user-0000", what: "connections", failure: "failed" }]);
  await timePasses(driver, 30_000);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
  expect(callsMade()).toHaveLength(3);
});

test("a 429 ends the listings of the tick, cools everybody down, and leaves the user due", async () => {
  await fault("/authorizations", { status: 429, headers: { "Retry-After": "40" } }, 5);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
  expect(callsMade()).toHaveLength(1);
  await timePasses(driver, 30_000);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 0 });
  expect(callsMade()).toHaveLength(1);
  // It stays due.
  expect(await comparedUsers()).toEqual([]);
});

test("what the answers said is counted", async () => {
  await fault("/authorizations", { status: 429, headers: { "Retry-After": "1" } });
  await reconcileTick(driver);
  await timePasses(driver, 30_000);
  await reconcileTick(driver);
  expect(await driver.redis("HGET", "snaptrade:metrics", "provider_responses:429")).toBe("1");
  expect(await driver.redis("HGET", "snaptrade:metrics", "provider_responses:200")).toBe("2");
});

test("a user whose stored secret cannot be read keeps no other from being listed, nor the tick from its end", async () => {
  await driver.sql`update snaptrade_users set secret_ciphertext = 'v1.broken' where user_id = 'user-0000'`;
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  expect(await comparedUsers()).toEqual(["user-0000", "user-0001"]);
  expect(driver.logged(NOT_LISTED)).toMatchObject([{ userId: "user-0000", level: "error" }]);
  expect(await heartbeats()).toBe(1);
});

test("a list with an account twice is stored all the same", async () => {
  driver.service.provider = {
    ...provider,
    async listAccounts(user, signal) {
      const answer = await provider.listAccounts(user, signal);
      return answer.kind === "ok" ? { ...answer, value: [...answer.value, ...answer.value] } : answer;
    },
  };
  await driver.sql`delete from snaptrade_users where user_id <> 'user-0000'`;
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  expect(new Set(jobsPublished(driver).map(({ workType, accountId }) => `${workType} ${accountId}`)).size).toBe(4);
  expect(jobsPublished(driver)).toHaveLength(4);
});

test("I7: an empty list removes nothing, and an account that an event removed stays removed", async () => {
  await driver.event(HOLDINGS, "acct-0000");
  await driver.event(HOLDINGS, "acct-0001");
  await driver.sql`delete from snaptrade_sync_jobs`;
  await driver.sql`update snaptrade_accounts set removed_at = now(), state_at = now() where account_id = 'acct-0001'`;
  const rows = () =>
    driver.sql`select account_id, removed_at is null as here from snaptrade_accounts where user_id = 'user-0000' order by 1`;
  const before = await rows();
  await driver.sql`delete from snaptrade_users where user_id = 'user-0001'`;
  await fault("/accounts", { body: [] });
  await fault("/authorizations", { body: [] });
  await timePasses(driver, 30_000);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  expect(await rows()).toEqual(before);
  await driver.sql`update snaptrade_users set compared_at = null, listed_at = null`;
  await timePasses(driver, 30_000);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  expect(await rows()).toEqual(before);
});

test.each(["a later list that shows it", "its connection's repair"])(
  "I7: an account that a wrong 404 closed comes back with %s",
  async (how) => {
    await driver.sql`delete from snaptrade_users where user_id = 'user-0001'`;
    await driver.synced("acct-0000");
    await driver.fault({ accountId: "acct-0000" }, { status: 404, body: { detail: "Not found." } });
    const { jobId } = await driver.event(HOLDINGS, "acct-0000");
    driver.stepRedisClock(10_000);
    expect(await driver.deliver(jobId)).toMatchObject({ outcome: "gone" });
    expect(await driver.event(HOLDINGS, "acct-0000")).toMatchObject({ outcome: "ignored" });
    if (how.startsWith("its")) {
      expect(await driver.event("CONNECTION_FIXED", "acct-0000")).toMatchObject({ outcome: "accepted" });
    } else {
      await timePasses(driver, DAY_MS);
      await driver.sql`update snaptrade_accounts set removed_at = removed_at - interval '1 day'`;
      expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
    }
    expect((await driver.event(HOLDINGS, "acct-0000")).outcome).not.toBe("ignored");
    const open = (await driver.jobs("acct-0000")).find(
      (job) => job.work_type === "holdings" && job.status === "queued",
    );
    driver.stepRedisClock(10_000);
    expect(await driver.deliverWhenDue(open?.id)).toMatchObject({ outcome: "done" });
  },
);

test("a connection that broke without a webhook is disabled, and a repaired one is read again", async () => {
  await driver.sql`delete from snaptrade_users where user_id = 'user-0001'`;
  await driver.simulate("PUT", "accounts/acct-0000", { disabled: true });
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  expect(jobsPublished(driver)).toEqual([]);
  await driver.simulate("PUT", "accounts/acct-0000", { disabled: false });
  await timePasses(driver, DAY_MS);
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  expect(jobsPublished(driver)).toHaveLength(4);
});

test("an event that is newer than the reading of a list stands", async () => {
  await driver.sql`delete from snaptrade_users where user_id = 'user-0001'`;
  driver.service.provider = {
    ...provider,
    async listAccounts(user, signal) {
      const answer = await provider.listAccounts(user, signal);
      const owner = { userId: "user-0000", brokerageAuthorizationId: "conn-0000" };
      await driver.app.post({ eventType: "CONNECTION_FIXED", ...owner });
      return answer;
    },
  };
  await driver.simulate("PUT", "accounts/acct-0000", { disabled: true });
  expect(await reconcileTick(driver)).toMatchObject({ listed: 1 });
  await driver.simulate("PUT", "accounts/acct-0000", { disabled: false });
  const [row] = await driver.sql`select disabled from snaptrade_connections where connection_id = 'conn-0000'`;
  expect(row).toEqual({ disabled: false });
});

test("a user who was removed while the lists were read gets no job", async () => {
  await driver.sql`delete from snaptrade_users where user_id = 'user-0001'`;
  driver.service.provider = {
    ...provider,
    async listAccounts(user, signal) {
      await driver.service.store.removeUser({ userId: user.userId });
      return provider.listAccounts(user, signal);
    },
  };
  await reconcileTick(driver);
  expect(jobsPublished(driver)).toEqual([]);
});

test("a waiting event whose key somebody holds is left to the next tick: ticks and sweeps never wait for each other", async () => {
  await driver.sql`delete from snaptrade_users`;
  await driver.event(HOLDINGS, "acct-0000");
  await driver.event(HOLDINGS, "acct-0001");
  await driver.app.addUsers();
  await driver.sql.begin(async (tx) => {
    await tx`select snaptrade_lock_key('holdings', 'acct-0000')`;
    expect(await reconcileTick(driver)).toMatchObject({ released: 1 });
  });
  expect(await reconcileTick(driver)).toMatchObject({ released: 1 });
});
