import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { SWEEP_PATH } from "@/lib/jobs/publisher";
import { type HttpCall, type HttpReply, json, type Listening, listen } from "@/sandbox/listen";
import {
  addAccounts,
  ago,
  deliverPage,
  empty,
  jobsPublished,
  names,
  pagesOf,
  reconcileTick,
  startSweep,
} from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** The budget takes some thousand keys a minute: a page is as long as its list. */
const RATE_LIMIT = 16_000;

let driver: Driver;
let proxy: Listening;
/** The place of the entry that QStash refuses in each batch. */
let refused: number | null = null;

beforeAll(async () => {
  proxy = await listen(forward);
  driver = await driveService({ accounts: 4, rateLimitPerMinute: RATE_LIMIT, env: { QSTASH_URL: proxy.url } });
});
beforeEach(() => empty(driver));
afterAll(async () => {
  await driver.app.close();
  await proxy.close();
});

/** QStash, but that one entry of a batch is refused; the other messages of it are sent. */
async function forward({ method, path, headers, body }: HttpCall): Promise<HttpReply> {
  const isBatch = path === "/v2/batch";
  const messages = isBatch ? z.array(z.unknown()).parse(JSON.parse(body.toString())) : [];
  const passed = Object.entries(headers).flatMap(([name, value]) =>
    /^(authorization|content-type|upstash-)/.test(name) ? [[name, String(value)] as const] : [],
  );
  const answer = await fetch(`${driver.stack.qstash.url}${path}`, {
    method,
    headers: Object.fromEntries(passed),
    body: isBatch ? JSON.stringify(messages.filter((_, i) => i !== refused)) : body.toString(),
  });
  const entries: unknown = await answer.json();
  if (refused === null || !Array.isArray(entries)) return json(entries, answer.status);
  return json(entries.toSpliced(refused, 0, { error: "this entry was refused" }));
}

/** Half a minute after the slots that are out now, for Redis and for Postgres. */
async function letTheGracePass(): Promise<void> {
  driver.stepRedisClock(91_000);
  await driver.sql`update snaptrade_sync_jobs set due_at = due_at - interval '91 seconds', published_at = published_at - interval '91 seconds'`;
}

test("a refused entry of a batch leaves its own job to reconcile, and no other", async () => {
  await addAccounts(driver, names("acct", 5));
  await startSweep(driver);
  refused = 3;
  const { published } = driver.stack.qstash.state();
  await deliverPage(driver);
  // The four others, and the next page.
  expect(driver.stack.qstash.state().published - published).toBe(5);
  const [line] = driver.logged("QStash did not take a publish; reconcile will");
  const left = jobsPublished(driver)[3];
  expect(line).toMatchObject({ count: 1, jobIds: [left?.jobId] });
  expect(await driver.redis("HGET", "snaptrade:metrics", "qstash_publish_failures")).toBe("1");

  refused = null;
  await driver.sql`update snaptrade_sync_jobs set status = 'done', finished_at = now() where id <> ${left?.jobId ?? ""}`;
  await letTheGracePass();
  expect(await reconcileTick(driver)).toMatchObject({ republished: 1 });
  expect(jobsPublished(driver).at(-1)).toMatchObject({ jobId: left?.jobId, delivery: 2 });
});

test("a crash between the acceptance and the publish of a page costs no job", async () => {
  await addAccounts(driver, names("acct", 4));
  await startSweep(driver);
  driver.failAt("sweep:accepted", new Error("the process is gone"));
  await expect(deliverPage(driver)).rejects.toThrow("500");
  expect(jobsPublished(driver)).toEqual([]);
  expect(await deliverPage(driver)).toBe("finished");
  expect((await reconcileTick(driver)).republished).toBe(0);
  await letTheGracePass();
  expect((await reconcileTick(driver)).republished).toBe(4);
  expect(
    jobsPublished(driver)
      .map(({ accountId }) => accountId)
      .toSorted(),
  ).toEqual(names("acct", 4));
});

test("2,500 stale accounts are all scheduled, though the API answers with 1000 rows at most", async () => {
  const ids = names("acct", 2_499);
  await addAccounts(driver, ids, { holdings_attempted_at: ago(40 * 3_600_000) });
  await addAccounts(driver, ["never-attempted"]);
  await driver.sql`
    insert into snaptrade_sync_jobs (work_type, account_id, reason, status, finished_at)
    select 'holdings', account_id, 'sweep', 'done', now() from snaptrade_accounts`;
  await driver.sql`analyze snaptrade_sync_jobs, snaptrade_accounts`;
  await startSweep(driver);
  while ((await deliverPage(driver)) === "page") driver.stepRedisClock(pagesOf(driver).at(-1)?.delayMs ?? 0);
  const scheduled = jobsPublished(driver).map(({ workType, accountId }) => `${workType} ${accountId}`);
  expect(scheduled).toEqual(["never-attempted", ...ids].map((id) => `holdings ${id}`));
  const [row] = await driver.sql`
    select count(*)::int as jobs, min(delivery) as least, max(delivery) as most from snaptrade_sync_jobs where status = 'queued'`;
  expect(row).toEqual({ jobs: 2_500, least: 1, most: 1 });
});

test("QStash carries a sweep to its end by itself: every stale account is read and the next cron call finds nothing", async () => {
  await driver.app.addUsers();
  for (const [place, user] of ["0000", "0001"].entries()) {
    const ids = names("acct", 2 * place + 2).slice(-2);
    await addAccounts(driver, ids, {
      user_id: `user-${user}`,
      connection_id: `conn-${user}`,
      transactions_synced_at: null,
    });
  }
  const { faults } = driver.stack.qstash;
  const usual = faults.current;
  faults.set({});
  await startSweep(driver);
  const states = () => driver.sql`
    select status, count(*)::int, (select value ->> 'sweepId' from snaptrade_service_state where name = 'sweep') as sweep
    from snaptrade_sync_jobs group by status`;
  await expect.poll(states, { timeout: 50_000 }).toEqual([{ status: "done", count: 8, sweep: null }]);
  const reads = driver.stack.qstash.state().deliveriesByPath;
  await startSweep(driver);
  await expect.poll(states).toEqual([{ status: "done", count: 8, sweep: null }]);
  faults.set(usual);
  expect(reads["/api/internal/process-snaptrade-holdings-sync"]).toBeGreaterThanOrEqual(4);
  expect(driver.stack.qstash.state().deliveriesByPath).toMatchObject({
    ...reads,
    [SWEEP_PATH]: (reads[SWEEP_PATH] ?? 0) + 1,
  });
}, 60_000);

test("the crons' routes do nothing with nothing to do", async () => {
  await addAccounts(driver, ["fresh"], { holdings_synced_at: ago(1_000) });
  await startSweep(driver);
  expect(await deliverPage(driver)).toBe("finished");
  expect(await reconcileTick(driver)).toEqual({
    taken: 0,
    dead: 0,
    republished: 0,
    released: 0,
    listed: 0,
    pruned: 0,
    redisAway: false,
  });
  expect(driver.published).toHaveLength(1);
});
