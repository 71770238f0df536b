import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterEach(() => driver.stack.supabase.clearFaults());
afterAll(() => driver.app.close());

const UPDATED = "ACCOUNT_TRANSACTIONS_UPDATED";
/** The seeded account whose transactions fill three pages. */
const ACCOUNT = "acct-0003";

async function stateOf(account: string) {
  const [row] = await driver.sql`
    select (select count(*)::int from snaptrade_transactions t where t.account_id = a.account_id) as stored,
      transactions_watermark as watermark, transactions_synced_at as synced_at, transactions_cursor ->> 'pages' as pages
    from snaptrade_accounts a where account_id = ${account}`;
  return row;
}

// B73
test("a page whose write Postgres cancels fails the run: no mark moves past what is stored, and the next run loses no row", async () => {
  await driver.synced(ACCOUNT);
  const { jobId } = await driver.event(UPDATED, ACCOUNT);
  driver.hold("run:page").release();
  const second = driver.hold("run:page");
  const run = driver.deliver(jobId);
  await second.reached;
  const message = "canceling statement due to statement timeout";
  driver.stack.supabase.fault({ status: 500, body: { code: "57014", message, details: null, hint: null } });
  second.release();
  expect(await run).toMatchObject({ status: 503, outcome: "postgres_away" });
  expect(await stateOf(ACCOUNT)).toEqual({ stored: 1000, watermark: null, synced_at: null, pages: "1" });
  expect(await driver.jobOf(jobId)).toMatchObject({ status: "running" });

  await driver.sql`update snaptrade_sync_jobs set lease_until = now() - interval '1 second' where id = ${jobId ?? ""}`;
  expect(await driver.deliver(jobId, 1)).toMatchObject({ outcome: "done" });
  const upstream = driver.stack.snaptrade.account(ACCOUNT)?.activities.length ?? 0;
  expect(upstream).toBeGreaterThan(2_000);
  expect(await stateOf(ACCOUNT)).toMatchObject({ stored: upstream, pages: null });
  expect((await stateOf(ACCOUNT))?.watermark).not.toBeNull();
});
