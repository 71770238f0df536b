import { afterAll, beforeAll, expect, test } from "vitest";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";
import { histories, UPDATED } from "@/tests/integration/service/trade-histories";

/**
 * I1 for jobs that no event's row stands behind: whoever asks for a reading means what is new now, though the job goes on
 * from the cursor of an older one.
 */
let driver: Driver;
const history = histories(() => driver);

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

/** A job that read one page of two, and news that came after it, above its cursor. */
async function halfRead(name: string) {
  const all = history.trades(name, 1100);
  const { account, jobId } = await history.withTrades(all);
  await history.failSecondPage(account, jobId);
  const fresh = [...history.trades(`${name}-fresh`, 2), ...all];
  await history.upstream(account, fresh);
  return { account, jobId, fresh };
}

/** The same, its event covered by that job, which is dead now and has finished it. */
async function deadInTheMiddle(name: string) {
  const found = await halfRead(name);
  expect(await driver.event(UPDATED, found.account)).toMatchObject({ outcome: "coalesced", jobId: found.jobId });
  await driver.fault({ accountId: found.account, path: "activities" }, { status: 402 });
  expect(await driver.deliverWhenDue(found.jobId)).toMatchObject({ outcome: "dead" });
  return found;
}

const key = (accountId: string) => ({ workType: "transactions", accountId }) as const;
const askFor = (accountId: string) =>
  driver.service.store.acceptJobs({
    ...{ reason: "manual", spacingMs: 0 },
    items: [{ jobId: driver.service.newId(), ...key(accountId) }],
  });

test("a replayed job reads what came while it was alive", async () => {
  const { account, jobId, fresh } = await deadInTheMiddle("replayed");
  await driver.service.store.replay({ items: [{ jobId, ...key(account) }] });
  expect(await driver.deliverWhenDue(jobId)).toMatchObject({ outcome: "done" });
  await history.expectStored(account, fresh);
});

test("a job that an operator asks for reads what came while the dead one was alive", async () => {
  const { account, fresh } = await deadInTheMiddle("asked");
  const { publish } = await askFor(account);
  expect(await driver.deliverWhenDue(publish[0]?.jobId)).toMatchObject({ outcome: "done" });
  await history.expectStored(account, fresh);
});

test("a job in the middle of a reading that an operator asks for reads the newest too, once", async () => {
  const { account, jobId, fresh } = await halfRead("queued");
  expect((await askFor(account)).publish).toEqual([]);
  expect(await driver.deliverWhenDue(jobId)).toMatchObject({ outcome: "done" });
  await history.expectStored(account, fresh);
  // Two of the first run, the rest of the old pass, and one page of another.
  expect(history.pagesRead(account)).toBe(4);
});
