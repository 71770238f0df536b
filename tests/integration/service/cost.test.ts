import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Costs, type Driver, driveService } from "@/tests/integration/service/drive-service";

/** Round trips counted at the fronts. The scripts are warm: only the first call of each costs Redis a second one. */
let driver: Driver;

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";

beforeAll(async () => {
  driver = await driveService();
  const account = await driver.synced(driver.nextAccount());
  const webhookId = randomUUID();
  await driver.event(HOLDINGS, account, { webhookId });
  await driver.event(HOLDINGS, account, { webhookId });
});
afterAll(() => driver.app.close());

const cost = (redis: number, postgres: number, qstash: number): Omit<Costs, "snaptrade"> => ({
  redis,
  postgres,
  qstash,
});

test("a duplicate costs one round trip to Redis and none to anybody else", async () => {
  const account = await driver.synced(driver.nextAccount());
  const webhookId = randomUUID();
  await driver.event(HOLDINGS, account, { webhookId });
  const seen = await driver.costOf(async () => {
    expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ outcome: "duplicate" });
  });
  expect(seen).toMatchObject(cost(1, 0, 0));
});

test("an event coalesced on a queued job costs one round trip to Redis, and one to Postgres that nobody waits for", async () => {
  const account = await driver.synced(driver.nextAccount());
  await driver.event(HOLDINGS, account);
  const verified = driver.hold("intake:verified");
  const seen = await driver.costOf(async () => {
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced" });
    await verified.reached;
    verified.release();
    await driver.app.settled();
  });
  expect(seen).toMatchObject(cost(1, 1, 0));
});

test("an event coalesced in Postgres costs two round trips to Redis and one to Postgres", async () => {
  const account = await driver.synced(driver.nextAccount());
  await driver.event(HOLDINGS, account);
  await driver.redis("DEL", `snaptrade:account:queued:holdings:${account}`);
  const seen = await driver.costOf(async () => {
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced" });
  });
  expect(seen).toMatchObject(cost(2, 1, 0));
});

test("an event that pulls a failing job forward costs one publish more", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.redis("DEL", `snaptrade:account:queued:holdings:${account}`);
  await driver.sql`update snaptrade_sync_jobs set attempts = 4, failed_at = now() - interval '6 minutes',
    due_at = now() + interval '1 hour' where id = ${jobId ?? null}`;
  const seen = await driver.costOf(async () => {
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "coalesced", jobId });
  });
  expect(seen).toMatchObject(cost(2, 1, 1));
});

test("an accepted event costs two round trips to Redis, one to Postgres and one publish", async () => {
  const account = await driver.synced(driver.nextAccount());
  const seen = await driver.costOf(async () => {
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "accepted" });
  });
  expect(seen).toMatchObject(cost(2, 1, 1));
});

test("an event that becomes the trailing job is not published", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  const reading = driver.hold("run:read");
  const run = driver.deliver(jobId);
  await reading.reached;
  const seen = await driver.costOf(async () => {
    expect(await driver.event(HOLDINGS, account)).toMatchObject({ outcome: "accepted" });
  });
  expect(seen).toMatchObject(cost(2, 1, 0));
  reading.release();
  await run;
});

test("a run costs three round trips to Redis, two to Postgres, its three calls, and a publish only for a trailing job", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  const [job] = (await driver.jobs(account)).filter(({ id }) => id === jobId);
  const message = {
    jobId: jobId ?? "",
    workType: "holdings",
    accountId: account,
    delivery: job?.delivery ?? 0,
  } as const;
  const alone = await driver.costOf(async () => {
    expect(await driver.deliverMessage(message)).toMatchObject({ outcome: "done" });
  });
  expect(alone).toEqual({ ...cost(3, 2, 0), snaptrade: 3 });

  const next = await driver.event(HOLDINGS, account);
  const unqueued = driver.hold("run:unqueued");
  const withTrailing = await driver.costOf(async () => {
    const run = driver.deliverMessage({ ...message, jobId: next.jobId ?? "" });
    await unqueued.reached;
    await driver.event(HOLDINGS, account);
    unqueued.release();
    expect(await run).toMatchObject({ outcome: "done" });
  });
  const trailing = cost(2, 1, 0);
  expect(withTrailing).toEqual({ ...cost(3 + trailing.redis, 2 + trailing.postgres, 1), snaptrade: 3 });
});

test("a run of transactions costs one round trip to Postgres more for each further page", async () => {
  const account = await driver.synced("acct-0003");
  expect(driver.stack.snaptrade.account(account)?.activities).toHaveLength(2300);
  await driver.sql`update snaptrade_accounts set transactions_pages = 3 where account_id = ${account}`;
  const { jobId } = await driver.event("ACCOUNT_TRANSACTIONS_UPDATED", account);
  const { delivery } = await driver.jobOf(jobId);
  const message = { jobId: jobId ?? "", workType: "transactions", accountId: account, delivery } as const;
  const seen = await driver.costOf(async () => {
    expect(await driver.deliverMessage(message)).toMatchObject({ outcome: "done" });
  });
  expect(seen).toEqual({ ...cost(3, 4, 0), snaptrade: 3 });
});

test("a delivery whose number is old costs no call and no publish", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.deliver(jobId);
  const seen = await driver.costOf(async () => {
    const message = { jobId: jobId ?? "", workType: "holdings", accountId: account, delivery: 1 } as const;
    expect(await driver.deliverMessage(message)).toMatchObject({ status: 200, outcome: "overtaken" });
  });
  expect(seen).toEqual({ redis: 2, postgres: 1, qstash: 0, snaptrade: 0 });
});
