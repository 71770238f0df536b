import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { guardContext } from "@/lib/composition";
import { type JobMessage, WORK_TYPES } from "@/lib/domain";
import * as scripts from "@/lib/guards/lua-scripts";
import { createGuards, keys } from "@/lib/snaptrade-webhook-guards";
import { isId } from "@/lib/webhook/event-ids";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** The keys in Redis: how long they live, whose they are, and what an answer that was lost says about them. */
let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterEach(() => driver.stack.redis.clearFaults());
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const HALF_HOUR = [1_790_000, 1_800_000] as const;
const DAY = [86_390_000, 86_400_000] as const;
const queuedKey = (account: string) => `snaptrade:account:queued:holdings:${account}`;
const lockKey = (account: string) => `snaptrade:account:lock:holdings:${account}`;

async function expectLives(key: string, [least, most]: readonly [number, number]): Promise<void> {
  const left = Number(await driver.redis("PTTL", key));
  expect(left, key).toBeGreaterThan(least);
  expect(left, key).toBeLessThanOrEqual(most);
}

/** A job that nobody knows: only Redis is asked. */
function lockOf(accountId: string, token: string) {
  const job: JobMessage = { jobId: randomUUID(), workType: "holdings", accountId, delivery: 1 };
  const end = {
    job,
    token,
    began: true,
    closed: false,
    unused: null,
    unmade: { calls: 0, slotAt: 0 },
    publish: [],
    counts: {},
  };
  return {
    end,
    claim: () =>
      driver.service.guards.claimAccountLock({ job, retried: 0, token, calls: 3, replace: false, counts: {} }),
    release: () => driver.service.guards.releaseAccountLock(end),
  };
}

// B37
test("every claim lives as long as it should, a cooldown no longer than was asked, and nothing but budget and counters for ever", async () => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  const claimed = driver.hold("intake:claimed");
  const event = driver.event(HOLDINGS, account, { webhookId });
  await claimed.reached;
  await expectLives(`snaptrade:webhook:${webhookId}`, DAY);
  await expectLives(queuedKey(account), HALF_HOUR);
  claimed.release();
  const { jobId } = await event;
  await expectLives(`snaptrade:webhook:${webhookId}`, DAY);
  await expectLives(queuedKey(account), HALF_HOUR);
  const coalesced = randomUUID();
  await driver.event(HOLDINGS, account, { webhookId: coalesced });
  await expectLives(`snaptrade:webhook:${coalesced}`, DAY);

  const headers = { "X-RateLimit-Account-Remaining": "0", "X-RateLimit-Account-Reset": "7" };
  await driver.fault({ accountId: account }, { status: 429, headers });
  const told = driver.hold("run:limits-told");
  const run = driver.deliver(jobId);
  await told.reached;
  await expectLives(lockKey(account), HALF_HOUR);
  await expectLives(`snaptrade:account:cooldown:${account}`, [0, 7_000]);
  told.release();
  expect(await run).toMatchObject({ outcome: "deferred" });

  const forEver: string[] = [];
  for (const key of [await driver.redis("KEYS", "*")].flat()) {
    if ((await driver.redis("PTTL", String(key))) === -1) forEver.push(String(key));
  }
  expect(forEver.sort()).toEqual(["snaptrade:metrics", "snaptrade:provider:budget"]);
});

// B33
test("a claim or a lock that is asked for twice with one token is ours both times: the first answer may have been lost", async () => {
  const account = driver.nextAccount();
  const { guards } = driver.service;
  const claim = { webhookId: randomUUID(), nonce: "ours", key: { workType: "holdings", accountId: account } } as const;
  for (let sent = 0; sent < 2; sent += 1) {
    expect(await guards.claimWebhook({ ...claim, shortCut: true })).toEqual({ kind: "claimed" });
  }
  expect(await driver.redis("GET", queuedKey(account))).toBe("pending:ours");

  const ours = lockOf(account, "ours");
  expect(await ours.claim()).toMatchObject({ kind: "go" });
  expect(await ours.claim()).toMatchObject({ kind: "go" });
  expect(await lockOf(account, "theirs").claim()).toEqual({ kind: "held" });
});

// B36
test("a run that ends after its time releases nothing of the next owner's", async () => {
  const account = driver.nextAccount();
  const [late, next] = [lockOf(account, "late"), lockOf(account, "next")];
  expect(await late.claim()).toMatchObject({ kind: "go" });
  driver.stepRedisClock(31 * 60_000);
  expect(await next.claim()).toMatchObject({ kind: "go" });
  await driver.redis("SET", queuedKey(account), next.end.job.jobId, "EX", 1800);
  const held = await driver.redis("GET", lockKey(account));
  expect(held).toMatch(/^next:/);

  await late.release();
  expect(await driver.redis("GET", lockKey(account))).toBe(held);
  await expectLives(lockKey(account), HALF_HOUR);
  expect(await driver.redis("GET", queuedKey(account))).toBe(next.end.job.jobId);
  await next.release();
  expect(await driver.redis("EXISTS", lockKey(account), queuedKey(account))).toBe(0);
});

// B35, B46
test.each([
  ["cannot be reached", { outage: true }],
  ["cuts the connection after it has carried out the command", { dropReply: true }],
  ["answers an error", { status: 500, body: { error: "ERR internal" } }],
  ["answers a page", { status: 502, body: "<html>Bad Gateway</html>" }],
  ["answers nothing", { status: 200, body: { result: null } }],
  ["answers too late", { delayMs: 10_000 }],
])(
  "a Redis that %s is asked once, gives no answer rather than a wrong one, and is asked anew the next time",
  async (_, fault) => {
    const guards = createGuards(guardContext(driver.service.env, driver.service.logger, 2_000));
    const claim = () => guards.claimWebhook({ webhookId: randomUUID(), nonce: "n", key: null, shortCut: true });
    await claim();
    driver.stack.redis.fault(fault);
    const before = driver.stack.redis.requests();
    expect(await claim()).toEqual({ kind: "away" });
    expect(driver.stack.redis.requests() - before).toBe(1);
    driver.stack.redis.clearFaults();
    expect(await claim()).toEqual({ kind: "claimed" });
  },
);

// B109
test("no two names form one key, and no script looks for keys by a pattern", () => {
  const context = guardContext(driver.service.env, driver.service.logger);
  const id = fc.stringMatching(/^[A-Za-z0-9_.-]{1,12}$/).filter(isId);
  const named = fc.oneof(
    fc.tuple(fc.constant("webhook"), id).map(([kind, x]) => [kind, x, keys.webhook(context, x)]),
    ...WORK_TYPES.flatMap((workType) => [
      id.map((accountId) => [`queued ${workType}`, accountId, keys.queued(context, { workType, accountId })]),
      id.map((accountId) => [`lock ${workType}`, accountId, keys.lock(context, { workType, accountId })]),
    ]),
    id.map((accountId) => ["cooldown", accountId, keys.accountCooldown(accountId)]),
    id.map((jobId) => ["slot", jobId, keys.slot({ jobId, delivery: 1, retried: 0 })]),
    fc.constantFrom(
      ["one", "budget", keys.budget],
      ["one", "cooldown", keys.cooldown],
      ["one", "m", keys.metrics(context)],
    ),
  );
  fc.assert(
    fc.property(named, named, ([kind, name, key], [otherKind, otherName, otherKey]) => {
      expect(key === otherKey).toBe(kind === otherKind && name === otherName);
    }),
    { numRuns: 2_000 },
  );
  const commands = Object.values(scripts).flatMap((script) => [...script.matchAll(/redis\.call\('(\w+)'/g)]);
  expect(new Set(commands.map(([, command]) => command))).toEqual(
    new Set(["TIME", "GET", "SET", "DEL", "HMGET", "HSET", "HDEL", "HGETALL", "HINCRBY"]),
  );
});
