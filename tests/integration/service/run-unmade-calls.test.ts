import { afterAll, beforeAll, expect, test } from "vitest";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** A call each 200 ms; the 5 % has room for one run of holdings. */
const LIMIT = 400;
const BACKLOG = 10;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({
    accounts: 60,
    rateLimitPerMinute: LIMIT,
    env: { SNAPTRADE_RATE_LIMIT_PER_MINUTE: String(LIMIT) },
  });
});
afterAll(() => driver.app.close());

async function anEvent(): Promise<{ account: string; jobId: string; delayMs: number }> {
  const account = driver.nextAccount();
  const { jobId = "" } = await driver.event("ACCOUNT_HOLDINGS_UPDATED", account);
  return { account, jobId, delayMs: driver.published.at(-1)?.delayMs ?? Number.NaN };
}

/** A run that SnapTrade refuses at its first call, of the three that its slot holds, and that ends after so long. */
async function refusedRun(jobId: string, account: string, tookMs: number): Promise<void> {
  const startedAt = Date.now();
  let now = startedAt;
  driver.service.clock = () => now;
  await driver.fault({ accountId: account }, { status: 403, body: { detail: "no access", code: "1076" } });
  const before = driver.callsOf(account).length;
  const read = driver.hold("run:read");
  const delivered = driver.deliver(jobId);
  await read.reached;
  now = startedAt + tookMs;
  read.release();
  expect(await delivered).toMatchObject({ outcome: "failed" });
  expect(driver.callsOf(account).length - before).toBe(1);
  driver.service.clock = Date.now;
}

test.each([
  ["begins at once", 0],
  ["begins at once", 2_000],
  ["waits behind the backlog", 2_001],
])("I5: the next event %s after runs that made one call of three and ended after %i ms", async (told, tookMs) => {
  driver.stepRedisClock(200_000);
  const refused = [await anEvent(), await anEvent()];
  for (let i = 0; i < BACKLOG; i += 1) await anEvent();
  driver.stepRedisClock(1_500);
  for (const { account, jobId } of refused) await refusedRun(jobId, account, tookMs);
  const { delayMs } = await anEvent();
  if (told === "begins at once") expect(delayMs).toBe(0);
  else expect(delayMs).toBeGreaterThan(2_000);
});
