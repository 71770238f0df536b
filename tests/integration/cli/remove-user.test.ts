import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { addUser, addUserCommand } from "@/lib/cli/commands/add-user";
import { removeUser } from "@/lib/cli/commands/remove-user";
import { releaseWaiting } from "@/lib/jobs/release-waiting";
import type { Service } from "@/lib/service";
import { operator, patient } from "@/tests/integration/cli/operator";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

/** A worker of a busy machine may be put off once by QStash, for ten seconds. */
const RUNS = { timeout: 45_000 };
vi.setConfig({ testTimeout: 60_000 });

let app: ServedApp<{ qstash: true; snaptrade: { accounts: number; rateLimitPerMinute: number } }>;
let service: Service;

beforeAll(async () => {
  app = await serveApp({ qstash: true, snaptrade: { accounts: 4, rateLimitPerMinute: 6000 } });
  service = patient(app.service);
});
afterAll(() => app.close());

test("a removed user has no secret, its jobs close as gone, and it comes back by being added again", async () => {
  const { sql } = app.stack.database;
  const statuses = async () => (await sql`select distinct status from snaptrade_sync_jobs`).map((row) => row.status);
  const user = {
    userId: "user-0000",
    userSecret: app.stack.snaptrade.users()[0]?.userSecret ?? "",
    authUserId: undefined,
  };
  await service.publisher.pause();
  expect(await addUser(operator(service), user, 60_000)).toMatchObject({ kind: "listed", jobs: 4 });

  const report = await removeUser(operator(service), "user-0000");
  expect(report).toMatchObject({ exit: 0, document: { userId: "user-0000", removed: true } });
  expect(report.text).toContain("At SnapTrade the user still exists");
  expect(await sql`select secret_ciphertext, deleted_at from snaptrade_users`).toEqual([
    { secret_ciphertext: null, deleted_at: expect.any(Date) },
  ]);
  await service.publisher.resume();
  await expect.poll(statuses, RUNS).toEqual(["gone"]);
  expect(await sql`select * from snaptrade_positions`).toHaveLength(0);

  const again = await addUserCommand(operator(service), user, 60_000);
  expect(again).toMatchObject({ exit: 0, document: { created: false, before: "removed", jobs: 4 } });
  expect(again.text).toMatch(/^user-0000 was removed; added again\. 1 connection, 2 accounts; 4 first jobs queued/);
  await expect.poll(async () => (await statuses()).toSorted(), RUNS).toEqual(["done", "gone"]);
});

test("events that still come for a removed user do not hold up those of others", async () => {
  await removeUser(operator(service), "user-0000");
  for (let n = 0; n < 3; n += 1) {
    const fixed = await app.post({ eventType: "CONNECTION_FIXED", brokerageAuthorizationId: "conn-0000" });
    expect(fixed).toMatchObject({ status: 200, outcome: "waiting" });
  }
  const other = { userId: "user-0001", accountId: "acct-0002", brokerageAuthorizationId: "conn-0001" };
  expect(await app.post({ eventType: "ACCOUNT_HOLDINGS_UPDATED", ...other })).toMatchObject({ outcome: "waiting" });
  await app.addUsers();
  await service.store.removeUser({ userId: "user-0000" });
  expect(await releaseWaiting(service, { limit: 1 })).toBe(1);
  expect(
    await app.stack.database.sql`select account_id from snaptrade_webhook_events where outcome = 'accepted'`,
  ).toEqual([{ account_id: "acct-0002" }]);
});

test("removing a user who is not there is a fault that names the id", async () => {
  const report = await removeUser(operator(service), "user-9999");
  expect(report).toMatchObject({
    exit: 1,
    document: { error: expect.stringContaining("No user user-9999 is stored") },
  });
});
