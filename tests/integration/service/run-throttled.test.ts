import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { accountWithNews } from "@/tests/integration/service/account-with-news";
import { reconcileTick, timePasses } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { storedVersion } from "@/tests/integration/service/stored-holdings";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 40 });
});
beforeEach(async () => {
  // What the test before set is over by then; only its key lives by the real clock.
  driver.stepRedisClock(1_000_000);
  await driver.redis("DEL", CLIENT);
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const CLIENT = "snaptrade:provider:cooldown";
const ofAccount = (account: string) => `snaptrade:account:cooldown:${account}`;

/** What is left of a cooldown: as its key expires. */
async function secondsLeft(key: string): Promise<number> {
  return Number(await driver.redis("PTTL", key)) / 1000;
}

/** How long the newest 429 was taken to ask for. */
function secondsAsked(): number {
  return Number(driver.logged("SnapTrade answered 429").at(-1)?.retryAfterMs) / 1000;
}

function throttled(headers: Record<string, string | null>, body?: object) {
  return { status: 429, headers, ...(body === undefined ? {} : { body }) };
}

async function expectDeferred(jobId: string, seconds: number): Promise<void> {
  const job = await driver.jobOf(jobId);
  expect(job).toMatchObject({ status: "queued", attempts: 0, delivery: 2, last_error: null });
  const message = driver.published.at(-1);
  expect(message?.dedupe).toBe(`${jobId}-2`);
  expect((message?.delayMs ?? 0) / 1000).toBeGreaterThan(seconds / 2);
  expect((message?.delayMs ?? 0) / 1000).toBeLessThan(seconds + 3);
}

test("a 429 of the client stops everybody: deferred without a failure, nothing called inside the cooldown, resumed after it", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await accountWithNews(driver);
  const before = driver.callsOf(account).length;
  await driver.fault({ accountId: account }, throttled({ "X-RateLimit-Remaining": "0", "Retry-After": "120" }));

  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(driver.callsOf(account).slice(before)).toMatchObject([{ status: 429 }]);
  expect(secondsAsked()).toBe(120);
  expect(await secondsLeft(CLIENT)).toBeGreaterThan(60);
  await expectDeferred(jobId, 120);

  driver.stepRedisClock(100_000);
  const calls = driver.stack.snaptrade.state().calls.length;
  expect(await driver.deliver(other.jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(driver.stack.snaptrade.state().calls).toHaveLength(calls);

  driver.stepRedisClock(21_000);
  for (const resumed of [{ account, jobId }, other]) {
    expect(await driver.deliver(resumed.jobId)).toMatchObject({ outcome: "done" });
    expect(await storedVersion(driver, resumed.account, 2)).toEqual({ positions: true, balances: true, orders: true });
    expect((await driver.jobOf(resumed.jobId)).attempts).toBe(0);
  }
});

test("a 429 of one account stops that account's both works and nobody else", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await accountWithNews(driver);
  const headers = { "X-RateLimit-Account-Remaining": "0", "X-RateLimit-Account-Reset": "90" };
  await driver.fault({ accountId: account, path: "positions" }, throttled(headers));
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(secondsAsked()).toBe(90);
  expect(await secondsLeft(ofAccount(account))).toBeGreaterThan(45);
  expect(await driver.redis("EXISTS", CLIENT)).toBe(0);
  await expectDeferred(jobId, 90);
  // What was good before it is stored.
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: false, balances: true, orders: false });

  const calls = driver.callsOf(account).length;
  const transactions = await driver.event("ACCOUNT_TRANSACTIONS_UPDATED", account);
  expect(await driver.deliver(transactions.jobId)).toMatchObject({ outcome: "deferred" });
  expect(driver.callsOf(account)).toHaveLength(calls);
  expect(await driver.deliver(other.jobId)).toMatchObject({ outcome: "done" });

  driver.stepRedisClock(91_000);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  expect(await driver.deliver(transactions.jobId)).toMatchObject({ outcome: "done" });
});

test("a 429 of one connection's manual refresh cools down nobody", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await accountWithNews(driver);
  await driver.fault({ accountId: account }, throttled({}, { detail: "Try again later.", code: "throttled" }));
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(await driver.redis("EXISTS", CLIENT, ofAccount(account))).toBe(0);
  expect(await driver.deliver(other.jobId)).toMatchObject({ outcome: "done" });
});

const none = { "X-RateLimit-Limit": null, "X-RateLimit-Remaining": null, "X-RateLimit-Reset": null };
test.each([
  ["seconds", { ...none, "Retry-After": "30" }, undefined, 30],
  ["a date", { ...none, "Retry-After": () => new Date(Date.now() + 60_000).toUTCString() }, undefined, 60],
  ["the reset header", { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "45" }, undefined, 45],
  ["the number in the text", none, undefined, 7],
  ["nothing at all: the default", none, {}, 60],
  ["an epoch in the wrong place: the default", { ...none, "Retry-After": "1790000000" }, {}, 60],
  ["an hour: as long as is believed", { ...none, "Retry-After": "3600" }, undefined, 900],
])("the length of a cooldown: %s", async (name, given, body, seconds) => {
  const { account, jobId } = await accountWithNews(driver);
  const headers = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, typeof value === "function" ? value() : value]),
  );
  await driver.fault({ accountId: account }, throttled(headers, body));
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "deferred" });
  expect(Math.ceil(secondsAsked())).toBeGreaterThanOrEqual(name === "a date" ? seconds / 2 : seconds);
  expect(secondsAsked()).toBeLessThanOrEqual(seconds);
  const left = await secondsLeft(CLIENT);
  expect(left).toBeGreaterThan(seconds > 10 ? seconds / 2 : -3);
  expect(left).toBeLessThanOrEqual(seconds);
});

test("a later, shorter 429 never shortens a cooldown", async () => {
  const [long, short] = [await accountWithNews(driver), await accountWithNews(driver)];
  await driver.fault({ accountId: short.account }, throttled({ ...none, "Retry-After": "5" }));
  await driver.fault({ accountId: long.account }, throttled({ ...none, "Retry-After": "200" }));
  const unqueued = driver.hold("run:unqueued");
  const slow = driver.deliver(short.jobId);
  await unqueued.reached;
  expect(await driver.deliver(long.jobId)).toMatchObject({ outcome: "deferred" });
  unqueued.release();
  expect(await slow).toMatchObject({ outcome: "deferred" });
  expect(await secondsLeft(CLIENT)).toBeGreaterThan(100);
});

test("a busy brokerage connection is asked again in half a minute: no failure, no cooldown", async () => {
  const { account, jobId } = await accountWithNews(driver);
  await driver.fault({ accountId: account }, { status: 503 });
  expect(await driver.deliver(jobId)).toMatchObject({ status: 200, outcome: "deferred" });
  expect(await driver.redis("EXISTS", CLIENT, ofAccount(account))).toBe(0);
  await expectDeferred(jobId, 30);
});

test("few calls left in an answer: nothing more is admitted until they are back", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await accountWithNews(driver);
  const low = { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "10" };
  await driver.fault({ accountId: account, path: "orders" }, { status: 200, headers: low });
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
  const calls = driver.stack.snaptrade.state().calls.length;
  expect(await driver.deliver(other.jobId)).toMatchObject({ outcome: "deferred" });
  expect(driver.stack.snaptrade.state().calls).toHaveLength(calls);
  driver.stepRedisClock(11_000);
  expect(await driver.deliver(other.jobId)).toMatchObject({ outcome: "done" });
});

test("a limit that fell below what the last minute holds: nothing is admitted until enough of that has left it", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await accountWithNews(driver);
  const fallen = { "X-RateLimit-Limit": String(driver.service.env.limits.rateLimit / 4) };
  const headers = { ...fallen, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3" };
  await driver.fault({ accountId: account }, throttled(headers));
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "deferred" });
  driver.stepRedisClock(44_000);
  await driver.redis("DEL", CLIENT);
  expect(await driver.deliver(other.jobId)).toMatchObject({ outcome: "deferred" });
  driver.stepRedisClock(2_000);
  expect(await driver.deliver(other.jobId)).toMatchObject({ outcome: "done" });
});

test("a limit that rises again: what was put off at the lower one's pace is published at once, and only once", async () => {
  const { guards } = driver.service;
  const [fallen, waiting, risen] = [
    await accountWithNews(driver),
    await accountWithNews(driver),
    await accountWithNews(driver),
  ];
  const low = { "X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "50" };
  await driver.fault({ accountId: fallen.account }, { status: 200, headers: low }, 3);
  expect(await driver.deliver(fallen.jobId)).toMatchObject({ outcome: "done" });
  const job = { delivery: 1, calls: 3, accountId: "a", workType: "holdings" } as const;
  const others = Array.from({ length: 30 }, (_, i) => ({ ...job, jobId: `other-${i}`, dueInMs: 0 }));
  await guards.settleSlots([{ ...job, jobId: risen.jobId, dueInMs: 40_000 }, ...others]);
  expect(await driver.deliver(waiting.jobId)).toMatchObject({ outcome: "deferred" });
  expect(driver.published.at(-1)?.delayMs).toBeGreaterThan(100_000);
  const again = () => driver.published.filter(({ dedupe }) => dedupe.startsWith(waiting.jobId)).slice(1);

  await timePasses(driver, 31_000);
  await reconcileTick(driver);
  expect(again()).toMatchObject([{ dedupe: `${waiting.jobId}-2` }]);
  await timePasses(driver, 10_000);
  expect(await driver.deliver(risen.jobId)).toMatchObject({ outcome: "done" });
  expect(again()).toMatchObject([{ dedupe: `${waiting.jobId}-2` }, { dedupe: `${waiting.jobId}-3` }]);
  expect(again().at(-1)?.delayMs).toBeLessThan(5_000);
  driver.stepRedisClock(4_000);
  expect(await driver.deliver(waiting.jobId)).toMatchObject({ outcome: "done" });
  expect(again()).toHaveLength(2);
});

test("what Postgres takes for a deferral is off the delay of its publish, so that the delivery comes in its slot", async () => {
  const { account, jobId } = await accountWithNews(driver);
  const other = await accountWithNews(driver);
  await driver.fault({ accountId: account }, throttled({ ...none, "Retry-After": "120" }));
  await driver.deliver(jobId);
  const { clock } = driver.service;
  const deferred = driver.hold("run:deferred");
  const delivery = driver.deliver(other.jobId);
  await deferred.reached;
  driver.service.clock = () => clock() + 100_000;
  deferred.release();
  expect(await delivery).toMatchObject({ outcome: "deferred" });
  driver.service.clock = clock;
  expect(driver.published.at(-1)).toMatchObject({ dedupe: `${other.jobId}-2` });
  expect(driver.published.at(-1)?.delayMs).toBeGreaterThan(0);
  expect(driver.published.at(-1)?.delayMs).toBeLessThanOrEqual(22_000);
});

test("an event of a key in its cooldown coalesces and calls nobody", async () => {
  const { account, jobId } = await accountWithNews(driver);
  await driver.fault({ accountId: account }, throttled({ ...none, "Retry-After": "300" }));
  await driver.deliver(jobId);
  const published = driver.published.length;
  expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId });
  expect(driver.published).toHaveLength(published);
  expect(await driver.jobs(account)).toHaveLength(2);
});
