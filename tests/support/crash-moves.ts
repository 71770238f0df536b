import { FAILURE_PATH } from "@/lib/jobs/publisher";
import type { CrashWorld } from "@/tests/support/crash-world";

/** What leads up to a race point, or to the moment before it. */

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";

export const news = async (world: CrashWorld, account: string) => {
  world.bump(account);
  return world.event(HOLDINGS, account);
};
export const tick = (world: CrashWorld) => world.cron("reconcile-snaptrade");
export const sweep = (world: CrashWorld) => world.cron("schedule-stale-snaptrade");
export const holdDeliveries = (world: CrashWorld) => world.service.publisher.pause();
export const letDeliver = (world: CrashWorld) => world.service.publisher.resume();

/** News whose message QStash acknowledged and lost. */
export const lostPublish = async (world: CrashWorld, account: string) => {
  world.stack.qstash.faults.set({ publish: { acknowledgeAndLose: true, times: 1 } });
  await news(world, account);
};
export const overdue = async (world: CrashWorld, account: string) => {
  await lostPublish(world, account);
  await world.pass(31_000);
};
export const pastItsLease = async (world: CrashWorld, accountId: string) => {
  await lostPublish(world, accountId);
  const [job] = await world.jobs([accountId]);
  const { store, env } = world.service;
  const delivery = { jobId: job?.id ?? "", workType: "holdings", accountId, delivery: 1 } as const;
  const begun = await store.begin({ ...delivery, messageId: null, leaseMs: 1, maxAttempts: env.limits.jobMaxAttempts });
  if (begun.outcome !== "begun") throw new Error(`The run to be lost did not begin: ${begun.outcome}`);
  await world.pass(1_000);
};
export const stale = async ({ sql, bump }: CrashWorld, account: string) => {
  await sql`update snaptrade_accounts set holdings_synced_at = now() - interval '40 hours',
    holdings_attempted_at = now() - interval '40 hours' where account_id = ${account}`;
  bump(account);
};
/** None of the transactions is stored. */
export const wholeHistory = async (world: CrashWorld, account: string) => {
  await world.sql`delete from snaptrade_transactions where account_id = ${account}`;
  await world.sql`update snaptrade_accounts set transactions_watermark = null where account_id = ${account}`;
  world.bump(account, "transactions");
};
export const transactionNews = (world: CrashWorld, account: string) =>
  world.event("ACCOUNT_TRANSACTIONS_UPDATED", account);
/** A run that has read, and behind it a job of an event that came meanwhile. */
export const runWithTrailingJob = async (world: CrashWorld, account: string) => {
  const { held } = await world.hold("run:read");
  await news(world, account);
  await held;
  await news(world, account);
};
/** Events of two accounts whose user is added only after them. */
export const waiting = async (world: CrashWorld, account: string, accounts: string[]) => {
  const { sql, service, stack } = world;
  const { userId = "" } = stack.snaptrade.account(account) ?? {};
  const [user] = await sql<{ secret_ciphertext: string }[]>`
    select secret_ciphertext from snaptrade_users where user_id = ${userId}`;
  for (const table of ["balances", "positions", "orders", "transactions"]) {
    await sql`delete from ${sql(`snaptrade_${table}`)} where account_id = any (${accounts})`;
  }
  for (const table of ["accounts", "connections", "users"]) {
    await sql`delete from ${sql(`snaptrade_${table}`)} where user_id = ${userId}`;
  }
  for (const each of accounts) await world.event("NEW_ACCOUNT_AVAILABLE", each);
  await service.store.putUser({ userId, secretCiphertext: user?.secret_ciphertext ?? "" });
  await sql`update snaptrade_users set compared_at = 'infinity', listed_at = now() where user_id = ${userId}`;
};
export const comparisonDue = async ({ sql, stack }: CrashWorld, account: string) => {
  await sql`update snaptrade_users set compared_at = now() - interval '2 days', created_at = now() - interval '2 days'
    where user_id = ${stack.snaptrade.account(account)?.userId ?? ""}`;
};
export const givenUp = async (world: CrashWorld, accountId: string) => {
  const [job] = await world.jobs([accountId]);
  const source = JSON.stringify({ jobId: job?.id, workType: "holdings", accountId, delivery: 1 });
  await world.deliver(
    FAILURE_PATH,
    JSON.stringify({ status: 503, sourceBody: Buffer.from(source).toString("base64") }),
  );
};
