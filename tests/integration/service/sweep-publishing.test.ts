import { bypass, HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
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
const KEYS_A_MINUTE = (RATE_LIMIT * 0.75) / 3;

let driver: Driver;
const network = setupServer();

beforeAll(async () => {
  driver = await driveService({ accounts: 2, rateLimitPerMinute: RATE_LIMIT });
  network.listen({ onUnhandledRequest: "bypass" });
});
beforeEach(() => empty(driver));
afterEach(() => network.resetHandlers());
afterAll(async () => {
  network.close();
  await driver.app.close();
});

/** QStash refuses one entry of each batch; the other messages of it are sent. */
function refuseAnEntry(place: number): void {
  network.use(
    http.post(`${driver.stack.qstash.url}/v2/batch`, async ({ request }) => {
      const messages = z.array(z.unknown()).parse(await request.clone().json());
      const others = messages.filter((_, i) => i !== place);
      const answer = await fetch(bypass(new Request(request, { body: JSON.stringify(others) })));
      const entries = z.array(z.unknown()).parse(await answer.json());
      return HttpResponse.json(entries.toSpliced(place, 0, { error: "this entry was refused" }));
    }),
  );
}

/** Half a minute after the slots that are out now, for Redis and for Postgres. */
async function letTheGracePass(): Promise<void> {
  driver.stepRedisClock(91_000);
  await driver.sql`update snaptrade_sync_jobs set due_at = due_at - interval '91 seconds', published_at = published_at - interval '91 seconds'`;
}

test("a refused entry of a batch leaves its own job to reconcile, and no other", async () => {
  await addAccounts(driver, names("acct", 5));
  await startSweep(driver);
  refuseAnEntry(3);
  const { published } = driver.stack.qstash.state();
  await deliverPage(driver);
  // The four others, and the next page.
  expect(driver.stack.qstash.state().published - published).toBe(5);
  const [line] = driver.logged("QStash did not take a publish; reconcile will");
  const refused = jobsPublished(driver)[3];
  expect(line).toMatchObject({ count: 1, jobIds: [refused?.jobId] });
  expect(await driver.redis("HGET", "snaptrade:metrics", "qstash_publish_failures")).toBe("1");

  network.resetHandlers();
  await driver.sql`update snaptrade_sync_jobs set status = 'done', finished_at = now() where id <> ${refused?.jobId ?? ""}`;
  await letTheGracePass();
  expect(await reconcileTick(driver)).toMatchObject({ republished: 1 });
  expect(jobsPublished(driver).at(-1)).toMatchObject({ jobId: refused?.jobId, delivery: 2 });
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
  const ids = names("acct", 2_500);
  await addAccounts(driver, ids, { transactions_synced_at: null });
  await startSweep(driver);
  let pages = 0;
  for (let outcome = await deliverPage(driver); outcome === "page"; outcome = await deliverPage(driver)) {
    driver.stepRedisClock(pagesOf(driver).at(-1)?.delayMs ?? 0);
    pages += 1;
  }
  expect(pages).toBeLessThanOrEqual(Math.ceil(5_000 / 1_000) + Math.ceil(5_000 / KEYS_A_MINUTE));
  const scheduled = jobsPublished(driver).map(({ workType, accountId }) => `${workType} ${accountId}`);
  expect(scheduled).toHaveLength(5_000);
  expect(new Set(scheduled)).toEqual(new Set(ids.flatMap((id) => [`holdings ${id}`, `transactions ${id}`])));
  const [row] = await driver.sql`
    select count(*)::int as jobs, min(delivery) as least, max(delivery) as most from snaptrade_sync_jobs where status = 'queued'`;
  expect(row).toEqual({ jobs: 5_000, least: 1, most: 1 });
});

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
