import { setTimeout as sleep } from "node:timers/promises";
import getPort from "get-port";
import { createService, guardContext } from "@/lib/composition";
import type { JobMessage, WorkType } from "@/lib/domain";
import { parseEnv } from "@/lib/env";
import { workerPath } from "@/lib/jobs/publisher";
import type { RacePoint } from "@/lib/service";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { compareAccounts, type Difference } from "@/sandbox/demo/compare-accounts";
import { Signer } from "@/sandbox/qstash/signer";
import { writeWire } from "@/sandbox/snaptrade/wire";
import { seedDatabase } from "@/sandbox/stack/seed-database";
import { timePasses } from "@/tests/integration/service/cron-calls";
import { bundleApp } from "@/tests/support/app-process/bundle-app";
import { type AppProcess, startAppProcess } from "@/tests/support/app-process/start-app-process";
import { startLocalStack } from "@/tests/support/local-stack";
import { postEvent, type WebhookAnswer } from "@/tests/support/post-event";

/** Far above what is called: slots are free at once, and what recovery takes is not the budget's. */
const PLENTY = 100_000;
/** The one with 2,300 transactions; those after its user's are for all. */
export const LONG_HISTORY = "acct-0003";
const FIRST_TAKEN = 4;
const PATIENCE_MS = 20_000;

type Posted = { accountId: string; fields: Record<string, unknown>; answered: boolean };

/**
 * The service in a process that can be killed, over real parts: QStash delivers by itself, Redis, Postgres and QStash keep
 * one stepped time, and a second process is always ready to take over the port.
 */
export async function startCrashWorld({ accounts }: { accounts: number }) {
  const port = await getPort({ host: "127.0.0.1" });
  const url = `http://127.0.0.1:${port}`;
  const [stack, bundle] = await Promise.all([
    startLocalStack({ qstash: true, snaptrade: { accounts, rateLimitPerMinute: PLENTY }, appUrl: url }),
    bundleApp(),
  ]);
  const { sql } = stack.database;
  const env = { ...stack.env, SNAPTRADE_MIN_RUN_SPACING: "1ms" };
  const parsed = parseEnv(env);
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const settings = parsed.env;
  const service = createService(settings);
  let aheadMs = 0;
  service.guards = createGuards({ ...guardContext(settings, service.logger), clock: () => now() });
  const { currentSigningKey: current, nextSigningKey: next } = settings.qstash;
  const signer = new Signer({ current, next });
  const [secretsKey] = settings.snaptrade.secretsKeys;
  if (secretsKey === undefined) throw new Error("No key for secrets");
  const { snaptrade, qstash } = stack;
  await seedDatabase(stack.database.url, {
    users: snaptrade.users(),
    connections: snaptrade.connections(),
    accounts: snaptrade.accounts(),
    secretsKey,
    fresh: false,
  });
  // Hours pass here: the daily comparison would find what a crash left, and show nothing of how it is recovered.
  await sql`update snaptrade_users set compared_at = 'infinity'`;

  const posted: Posted[] = [];
  let taken = FIRST_TAKEN - 1;
  let spare = startAppProcess(bundle.file);
  let app: AppProcess;
  await takeOver();

  function now(): number {
    return Date.now() + aheadMs;
  }

  function step(ms: number): void {
    aheadMs += ms;
  }

  async function takeOver(): Promise<void> {
    await spare.ready;
    app = spare;
    await app.tell({ do: "serve", port, env, aheadMs });
    spare = startAppProcess(bundle.file);
  }

  async function cron(name: "reconcile-snaptrade" | "schedule-stale-snaptrade"): Promise<Record<string, unknown>> {
    const headers = { Authorization: `Bearer ${settings.cronSecret}` };
    const response = await fetch(`${url}/api/cron/${name}`, { headers });
    if (response.status !== 200) throw new Error(`${name} answered ${response.status}:\n${app.output().slice(-2000)}`);
    return (await response.json()) as Record<string, unknown>;
  }

  async function post(each: Posted): Promise<WebhookAnswer> {
    const answer = await postEvent({ url, ...settings.snaptrade }, each.fields);
    each.answered ||= answer.status === 200;
    return answer;
  }

  const world = {
    stack,
    sql,
    service,
    now,
    /** By how much time was stepped so far. */
    stepped: () => aheadMs,
    cron,
    posted,
    /** Accounts that no other row uses; two are of one user. */
    take(count: number): string[] {
      if (count === 2 && taken % 2 === 0) taken += 1;
      return Array.from({ length: count }, () => {
        taken += 1;
        if (taken >= accounts) throw new Error(`All ${accounts} seeded accounts are taken`);
        return `acct-${String(taken).padStart(4, "0")}`;
      });
    },
    /** News upstream of an account. */
    bump(accountId: string, workType: WorkType = "holdings"): void {
      snaptrade.bumpAccount(accountId, workType);
    },
    /** Posts a signed event of an account. One that gets no 200 comes again, as from SnapTrade. */
    event(eventType: string, accountId: string): Promise<WebhookAnswer> {
      const owner = snaptrade.account(accountId);
      const fields = { eventType, accountId, userId: owner?.userId, brokerageAuthorizationId: owner?.connectionId };
      const each = { accountId, fields: { webhookId: service.newId(), ...fields }, answered: false };
      posted.push(each);
      return post(each);
    },
    async resend(each: Posted): Promise<WebhookAnswer> {
      const answer = await post(each);
      if (answer.status !== 200) throw new Error(`An event that came again was answered ${answer.status}`);
      return answer;
    },
    async jobs(accountIds: string[]): Promise<{ id: string; work_type: WorkType; status: string; delivery: number }[]> {
      return sql`select id, work_type, status, delivery from snaptrade_sync_jobs where account_id = any (${accountIds})
        order by created_at, id`;
    },
    callsOf(accountIds: string[]): number {
      return snaptrade.state().calls.filter(({ account }) => account !== null && accountIds.includes(account)).length;
    },
    differences(accountIds: string[]): Promise<Difference[]> {
      const wanted = snaptrade.accounts().filter(({ accountId }) => accountIds.includes(accountId));
      return compareAccounts(sql, wanted);
    },
    /** The simulator's answers go wrong. */
    async fault(match: object, respond: object, times = 1): Promise<void> {
      const body = writeWire({ match, respond, times });
      const response = await fetch(`${snaptrade.url}/_sim/faults`, { method: "POST", body });
      if (!response.ok) throw new Error(await response.text());
    },
    async redis(...command: (string | number)[]): Promise<void> {
      const headers = { Authorization: `Bearer ${stack.redis.token}` };
      await fetch(stack.redis.url, { method: "POST", headers, body: JSON.stringify(command) });
    },
    /** A message as QStash delivers it, by hand. */
    async deliver(path: string, body: string): Promise<void> {
      const signature = await signer.sign({
        url: `${url}${path}`,
        body: Buffer.from(body),
        key: "current",
        skewSeconds: 0,
      });
      await fetch(`${url}${path}`, { method: "POST", body, headers: { "Upstash-Signature": signature } });
    },
    deliverJob({ jobId, workType, accountId, delivery }: JobMessage): Promise<void> {
      return world.deliver(workerPath(workType), JSON.stringify({ jobId, workType, accountId, delivery }));
    },
    /** Time goes on for Redis, Postgres and QStash, whose due deliveries go out. */
    async pass(ms: number): Promise<void> {
      await timePasses({ sql, stepRedisClock: step }, ms);
      await app.tell({ do: "step", aheadMs });
      qstash.clock.advance(ms);
    },
    /** The next one that reaches the point waits there until `letGo`. */
    async hold(point: RacePoint): Promise<{ held: Promise<void> }> {
      await app.tell({ do: "at", point, act: "hold", nth: 1 });
      return { held: app.held() };
    },
    letGo: () => app.tell({ do: "release" }),
    /** Kills the process at the point, which `trigger` leads it to, and lets the other one take over. */
    async crash(point: RacePoint, nth: number, trigger: () => Promise<unknown>): Promise<void> {
      await app.tell({ do: "at", point, act: "die", nth });
      const triggered = trigger().then(
        () => null,
        (error: unknown) => error,
      );
      const how = await Promise.race([app.exited, sleep(PATIENCE_MS, "late", { ref: false })]);
      if (how !== "SIGKILL") {
        throw new Error(`${point} was not reached (${how}, ${await triggered}):\n${app.output().slice(-3000)}`);
      }
      await triggered;
      await takeOver();
    },
    /** Until nothing is under way: no delivery, and nothing after a response. */
    async quiet(): Promise<void> {
      for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await sleep(2)) {
        const { inFlight, waiting } = qstash.state();
        if (inFlight > 0 || waiting > 0) continue;
        await app.tell({ do: "settle" });
        const again = qstash.state();
        if (again.inFlight === 0 && again.waiting === 0) return;
      }
      throw new Error(`QStash is not quiet: ${JSON.stringify(qstash.state().deliveries.slice(-5))}`);
    },
    output: () => app.output(),
    async close(): Promise<void> {
      await Promise.all([app.kill(), spare.kill()]);
      await stack.close();
      await bundle.remove();
    },
  };
  return world;
}

export type CrashWorld = Awaited<ReturnType<typeof startCrashWorld>>;
