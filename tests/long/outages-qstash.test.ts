import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type CrashWorld, startCrashWorld } from "@/tests/support/crash-world";
import { SLOT_MS, untilFreshAndIdle } from "@/tests/support/prove-recovery";

/** QStash is at fault for ten minutes of its clock, while events come and the crons tick. */
const MINUTE_S = 60;
const OUTAGE_MINUTES = 10;
/** Reconcile publishes at growing distances, at most eight minutes apart; then one period of the cron. */
const WITHIN_S = (8 + 1) * MINUTE_S;

let world: CrashWorld;

beforeAll(async () => {
  world = await startCrashWorld({ accounts: 60 });
}, 120_000);
beforeEach(() => world.stack.qstash.faults.set({}));
afterAll(() => world.close());

/** An event a minute for each of the accounts, each with news, and a tick a minute. */
async function tenMinutes(accounts: string[]): Promise<void> {
  for (let minute = 0; minute < OUTAGE_MINUTES; minute += 1) {
    for (const account of accounts) {
      world.bump(account);
      expect(await world.event("ACCOUNT_HOLDINGS_UPDATED", account)).toMatchObject({ status: 200 });
    }
    await world.pass(MINUTE_S * 1000);
    await world.cron("reconcile-snaptrade");
  }
}

async function expectOneRunEach(accounts: string[], calls: number): Promise<void> {
  expect((await world.jobs(accounts)).map(({ status }) => status)).toEqual(accounts.map(() => "done"));
  expect(calls).toBe(3 * accounts.length);
  const open = await world.sql`select webhook_id from snaptrade_webhook_events
    where account_id = any (${accounts}) and finished_at is null`;
  expect(open).toHaveLength(0);
}

test.each([
  ["cannot be reached", { outage: true }],
  ["refuses every message", { publish: { status: 500 } }],
  ["acknowledges every message and loses it", { publish: { acknowledgeAndLose: true } }],
])(
  "QStash %s for ten minutes: every event is answered 200, and afterwards one run an account covers all of them",
  {
    timeout: 120_000,
  },
  async (_, faults) => {
    const accounts = world.take(6);
    const before = world.callsOf(accounts);
    world.stack.qstash.faults.set(faults);
    await tenMinutes(accounts);
    expect(world.callsOf(accounts)).toBe(before);
    expect((await world.jobs(accounts)).map(({ status }) => status)).toEqual(accounts.map(() => "queued"));

    world.stack.qstash.faults.set({});
    const { freshAfterMs, by } = await untilFreshAndIdle(
      world,
      { firstTickS: MINUTE_S, withinS: WITHIN_S },
      accounts,
      [],
    );
    expect(freshAfterMs, by).toBeLessThanOrEqual(WITHIN_S * 1000 + SLOT_MS);
    await expectOneRunEach(accounts, world.callsOf(accounts) - before);
  },
);

test("a sweep that QStash does not take is started anew by the next call of the cron", {
  timeout: 120_000,
}, async () => {
  const accounts = world.take(4);
  const before = world.callsOf(accounts);
  await world.sql`update snaptrade_accounts set holdings_synced_at = now() - interval '40 hours'
    where account_id = any (${accounts})`;
  for (const account of accounts) world.bump(account);
  world.stack.qstash.faults.set({ outage: true });
  expect(await world.cron("schedule-stale-snaptrade")).toEqual({ sweep: "not_published" });
  world.stack.qstash.faults.set({});
  const withinS = 15 * MINUTE_S;
  const { freshAfterMs, by } = await untilFreshAndIdle(world, { withinS }, accounts, []);
  expect(freshAfterMs, by).toBeLessThanOrEqual(withinS * 1000 + SLOT_MS);
  await expectOneRunEach(accounts, world.callsOf(accounts) - before);
});

test("QStash delivers every message twice while events come: no more runs than it takes, and no call more", {
  timeout: 120_000,
}, async () => {
  const accounts = world.take(10);
  const before = world.callsOf(accounts);
  world.stack.qstash.faults.set({ deliver: { duplicate: true } });
  for (let round = 0; round < 5; round += 1) {
    for (const account of accounts) world.bump(account);
    const posts = accounts.flatMap((account) => [account, account]);
    await Promise.all(posts.map((account) => world.event("ACCOUNT_HOLDINGS_UPDATED", account)));
  }
  const withinS = 2 * MINUTE_S;
  const { freshAfterMs, by } = await untilFreshAndIdle(world, { withinS }, accounts, []);
  expect(freshAfterMs, by).toBeLessThanOrEqual(withinS * 1000 + SLOT_MS);
  const jobs = await world.jobs(accounts);
  expect(new Set(jobs.map(({ status }) => status))).toEqual(new Set(["done"]));
  expect(world.callsOf(accounts) - before).toBe(3 * jobs.length);
});
