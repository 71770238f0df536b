import { afterAll, beforeAll, expect, test } from "vitest";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** A call each 200 ms; the 5 % has room for one run of holdings whose account is known. */
const LIMIT = 400;
const BACKLOG = 10;

let driver: Driver;

beforeAll(async () => {
  driver = await driveService({
    accounts: 60,
    rateLimitPerMinute: LIMIT,
    env: { SNAPTRADE_RATE_LIMIT_PER_MINUTE: String(LIMIT) },
  });
  driver.freezeRedisClock();
});
afterAll(() => driver.app.close());

/** A first run reads the account too: its slot holds four calls. */
const SLOT_MS = 800;

async function anEvent(account = driver.nextAccount()): Promise<{ account: string; jobId: string; delayMs: number }> {
  const { jobId = "" } = await driver.event("ACCOUNT_HOLDINGS_UPDATED", account);
  return { account, jobId, delayMs: driver.published.at(-1)?.delayMs ?? Number.NaN };
}

/** A run that SnapTrade refuses at its first call, of the four that its slot holds, and that takes so long. */
async function refusedRun(jobId: string, account: string, tookMs: number): Promise<void> {
  await driver.fault({ accountId: account }, { status: 403, body: { detail: "no access", code: "1076" } });
  const before = driver.callsOf(account).length;
  const read = driver.hold("run:read");
  const delivered = driver.deliver(jobId);
  await read.reached;
  driver.stepRedisClock(tookMs);
  read.release();
  expect(await delivered).toMatchObject({ outcome: "failed" });
  expect(driver.callsOf(account).length - before).toBe(1);
}

test.each([
  ["begins at once", 0],
  ["begins at once", 500],
  ["waits behind the backlog", 2_000],
])("I5: the next event %s after runs that made one call of four and took %i ms", async (told, tookMs) => {
  driver.stepRedisClock(200_000);
  const known = await driver.synced(driver.nextAccount());
  driver.stepRedisClock(200_000);
  const refused = [await anEvent(), await anEvent()];
  for (let i = 0; i < BACKLOG; i += 1) await anEvent();
  for (const { account, jobId } of refused) {
    await refusedRun(jobId, account, tookMs);
    driver.stepRedisClock(Math.max(0, SLOT_MS - tookMs));
  }
  const { delayMs } = await anEvent(known);
  if (told === "begins at once") expect(delayMs).toBe(0);
  else expect(delayMs).toBeGreaterThan(1_000);
});
