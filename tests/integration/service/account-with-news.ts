import { expect } from "vitest";
import type { Driver } from "@/tests/integration/service/drive-service";
import { storedVersion } from "@/tests/integration/service/stored-holdings";

/** A stored account with news upstream, and the job of an event that says so. */
export async function accountWithNews(driver: Driver): Promise<{ account: string; jobId: string }> {
  const account = await driver.synced(driver.nextAccount());
  driver.stack.snaptrade.bumpAccount(account, "holdings");
  const { jobId = "" } = await driver.event("ACCOUNT_HOLDINGS_UPDATED", account);
  return { account, jobId };
}

/** The first news upstream is stored, in all three parts. */
export async function expectNewsStored(driver: Driver, account: string): Promise<void> {
  expect(await storedVersion(driver, account, 2)).toEqual({ positions: true, balances: true, orders: true });
}
