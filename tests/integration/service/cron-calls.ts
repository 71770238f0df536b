import { z } from "zod";
import { WORK_TYPES, type WorkType } from "@/lib/domain";
import { type Message, SWEEP_PATH } from "@/lib/jobs/publisher";
import type { Driver } from "@/tests/integration/service/drive-service";

const tick = z.object({
  taken: z.number(),
  dead: z.number(),
  republished: z.number(),
  released: z.number(),
  listed: z.number(),
  pruned: z.number(),
  redisAway: z.boolean(),
});
const sweepStart = z.object({ sweep: z.string() });
const jobBody = z.object({
  jobId: z.string(),
  workType: z.enum(WORK_TYPES),
  accountId: z.string(),
  delivery: z.number(),
});

export type JobPublish = z.infer<typeof jobBody> & { delayMs: number };

/** Calls a cron route as Vercel does. */
async function callCron(driver: Driver, path: string): Promise<{ status: number; body: unknown }> {
  const headers = { Authorization: `Bearer ${driver.service.env.cronSecret}` };
  const response = await fetch(`${driver.app.url}${path}`, { headers });
  return { status: response.status, body: await response.json() };
}

/** One tick of the reconcile cron, which is expected to end well. */
export async function reconcileTick(driver: Driver): Promise<z.infer<typeof tick>> {
  const { status, body } = await callCron(driver, "/api/cron/reconcile-snaptrade");
  if (status !== 200) throw new Error(`Reconcile answered ${status}: ${JSON.stringify(driver.app.log.slice(-5))}`);
  return tick.parse(body);
}

/** The cron call that starts a sweep. */
export async function startSweep(driver: Driver): Promise<string> {
  return sweepStart.parse((await callCron(driver, "/api/cron/schedule-stale-snaptrade")).body).sweep;
}

/** The pages of sweeps that were published so far. */
export function pagesOf(driver: Driver): Message[] {
  return driver.published.filter(({ path }) => path === SWEEP_PATH);
}

/** Delivers a page of a sweep as QStash does: the newest one that was published. Answers its outcome. */
export async function deliverPage(driver: Driver, page = pagesOf(driver).at(-1)): Promise<string | undefined> {
  if (page === undefined) throw new Error("No page of a sweep was published");
  const { status, outcome } = await driver.asQStash(SWEEP_PATH, JSON.stringify(page.body));
  if (status !== 200) throw new Error(`A page answered ${status}: ${JSON.stringify(driver.app.log.slice(-5))}`);
  return outcome;
}

/** The job messages that were published so far, in order. */
export function jobsPublished(driver: Driver): JobPublish[] {
  return driver.published.flatMap(({ path, body, delayMs }) =>
    path === SWEEP_PATH ? [] : [{ ...jobBody.parse(body), delayMs }],
  );
}

/** An empty service: no rows, no Redis, nothing published, no lines. */
export async function empty(driver: Driver): Promise<void> {
  await driver.sql`truncate snaptrade_users, snaptrade_webhook_events, snaptrade_service_state cascade`;
  await driver.stack.redis.flush();
  driver.published.splice(0);
  driver.app.log.splice(0);
}

export type AccountColumns = Partial<Record<`${WorkType}_${"synced_at" | "attempted_at"}`, Date | null>> & {
  holdings_retry_at?: Date;
  transactions_watermark?: string;
  removed_at?: Date;
  connection_id?: string;
  user_id?: string;
};

/**
 * Accounts of a user and a connection of their own name, which SnapTrade knows nothing of. Holdings were never synced;
 * transactions are fresh unless `columns` say otherwise.
 */
export async function addAccounts(driver: Driver, ids: string[], columns: AccountColumns = {}): Promise<string[]> {
  const { sql } = driver;
  const owner = { user_id: columns.user_id ?? "owner", connection_id: columns.connection_id ?? "connection" };
  await sql`insert into snaptrade_users ${sql({ user_id: owner.user_id })} on conflict do nothing`;
  await sql`insert into snaptrade_connections ${sql(owner)} on conflict do nothing`;
  const rows = ids.map((account_id) => ({
    transactions_synced_at: new Date(),
    detail_read_at: new Date(),
    ...owner,
    ...columns,
    account_id,
  }));
  await sql`insert into snaptrade_accounts ${sql(rows)}`;
  return ids;
}

/** `prefix-0000`, `prefix-0001`... */
export function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${String(i).padStart(4, "0")}`);
}

export function ago(ms: number): Date {
  return new Date(Date.now() - ms);
}

/** Time goes on, for Redis's clock and for every time that stands in a row. */
export async function timePasses(driver: Pick<Driver, "sql" | "stepRedisClock">, ms: number): Promise<void> {
  const { sql } = driver;
  const by = sql`make_interval(secs => ${ms / 1000})`;
  driver.stepRedisClock(ms);
  await sql`
    update snaptrade_sync_jobs set due_at = due_at - ${by}, published_at = published_at - ${by}, failed_at = failed_at - ${by},
      lease_until = lease_until - ${by}, created_at = created_at - ${by}, started_at = started_at - ${by},
      finished_at = finished_at - ${by}`;
  await sql`update snaptrade_users set listed_at = listed_at - ${by}, compared_at = compared_at - ${by}, created_at = created_at - ${by}`;
  await sql`update snaptrade_service_state set at = at - ${by}`;
  await sql`update snaptrade_webhook_events set received_at = received_at - ${by}, finished_at = finished_at - ${by}`;
}
