import { z } from "zod";
import { guardContext } from "@/lib/composition";
import type { JobMessage, WorkType } from "@/lib/domain";
import { type Message, workerPath } from "@/lib/jobs/publisher";
import type { RacePoint, Service } from "@/lib/service";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { Signer } from "@/sandbox/qstash/signer";
import { writeWire } from "@/sandbox/snaptrade/wire";
import { serveApp } from "@/tests/support/serve-app";

/** Far above what a test calls: the budget never defers, unless a test wants it to. */
const PLENTY = 100_000;
/** Patient, so that a busy machine does not look like a Redis that is away. */
const REDIS_TIMEOUT_MS = 15_000;

export type JobRow = {
  id: string;
  work_type: WorkType;
  account_id: string;
  status: string;
  attempts: number;
  delivery: number;
  fence: string | null;
  due_at: Date;
  lease_until: Date | null;
  started_at: Date | null;
  failed_at: Date | null;
  last_error: string | null;
  republished: number;
};
export type EventRow = {
  outcome: string;
  processed: boolean;
  finished_at: Date | null;
  job_ids: string[];
  payload: unknown;
};
export type DeliveryAnswer = { status: number; outcome: string | undefined; headers: Headers };
export type Gate = { reached: Promise<void>; release: () => void };
export type Costs = { redis: number; postgres: number; qstash: number; snaptrade: number };

const deliveryAnswer = z.object({ outcome: z.string().optional() });

/**
 * The service, driven by hand: QStash takes every publish and delivers none of them, so that a test decides what is
 * delivered, when and how often. Redis's clock can be stepped and race points held. Tests share the stack and take an
 * account each.
 */
export async function driveService(
  given: { accounts?: number; rateLimitPerMinute?: number; redisUrl?: string; env?: Record<string, string> } = {},
) {
  const gates = createGates();
  const { accounts = 30, rateLimitPerMinute = PLENTY } = given;
  const app = await serveApp(
    {
      qstash: true,
      snaptrade: { accounts, rateLimitPerMinute },
      ...(given.redisUrl === undefined ? {} : { redisUrl: given.redisUrl }),
    },
    { ...(given.env === undefined ? {} : { env: given.env }), overrides: { reach: gates.reach } },
  );
  const { service, stack, url } = app;
  const { sql } = stack.database;
  stack.qstash.faults.set({ publish: { acknowledgeAndLose: true } });
  await app.addUsers();

  let ahead = 0;
  let frozenAt: number | undefined;
  const guards = guardContext(service.env, service.logger, REDIS_TIMEOUT_MS);
  const redisClock = () => (frozenAt ?? Date.now()) + ahead;
  service.guards = createGuards({ ...guards, clock: redisClock });
  const published = recordPublishes(service);
  const { currentSigningKey: current, nextSigningKey: next } = service.env.qstash;
  const signer = new Signer({ current, next });
  let taken = -1;

  async function asQStash(path: string, body: string, headers: Record<string, string> = {}): Promise<DeliveryAnswer> {
    const signature = await signer.sign({
      url: `${url}${path}`,
      body: Buffer.from(body),
      key: "current",
      skewSeconds: 0,
    });
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      body,
      headers: { "Upstash-Signature": signature, "Upstash-Message-Id": "msg_by_hand", ...headers },
    });
    const { outcome } = deliveryAnswer.parse(await response.json());
    return { status: response.status, outcome, headers: response.headers };
  }

  const driver = {
    app,
    service,
    stack,
    sql,
    /** Every message that was given to QStash, in order. */
    published,
    hold: gates.hold,
    failAt: gates.failAt,
    /** Moves Redis's clock: what the budget, the slots, the cooldowns and the locks' leases count by. */
    stepRedisClock(ms: number) {
      ahead += ms;
    },
    redisClock,
    /** From here on Redis's clock moves by steps alone: how long the work takes is of no consequence. */
    freezeRedisClock() {
      frozenAt = Date.now();
    },
    /** An account that no other test of the file uses. The one with 2,300 transactions is left to who names it. */
    nextAccount(): string {
      taken += taken === 2 ? 2 : 1;
      if (taken >= accounts) throw new Error(`All ${accounts} seeded accounts are taken`);
      return `acct-${String(taken).padStart(4, "0")}`;
    },
    /** Posts a signed event of an account, with the ids of its owner. */
    event(eventType: string, accountId: string, fields: Record<string, unknown> = {}) {
      const owner = stack.snaptrade.account(accountId);
      const ids = owner && { userId: owner.userId, brokerageAuthorizationId: owner.connectionId };
      return app.post({ eventType, accountId, ...ids, ...fields });
    },
    async jobs(accountId: string): Promise<JobRow[]> {
      return sql<JobRow[]>`select * from snaptrade_sync_jobs where account_id = ${accountId} order by created_at, id`;
    },
    async jobOf(jobId: string | undefined): Promise<JobRow> {
      const [job] = await sql<JobRow[]>`select * from snaptrade_sync_jobs where id = ${jobId ?? null}`;
      if (job === undefined) throw new Error(`No job ${jobId}`);
      return job;
    },
    async rowsOf(webhookId: string): Promise<EventRow[]> {
      return sql<EventRow[]>`select * from snaptrade_webhook_events where webhook_id = ${webhookId} order by id`;
    },
    asQStash,
    /** One message, as QStash delivers it. */
    deliverMessage({ jobId, workType, accountId, delivery }: JobMessage, retried = 0): Promise<DeliveryAnswer> {
      const body = JSON.stringify({ jobId, workType, accountId, delivery });
      return asQStash(workerPath(workType), body, { "Upstash-Retried": String(retried) });
    },
    /** A job under its newest delivery number. */
    async deliver(jobId: string | undefined, retried = 0): Promise<DeliveryAnswer> {
      const { id, work_type, account_id, delivery } = await driver.jobOf(jobId);
      return driver.deliverMessage({ jobId: id, workType: work_type, accountId: account_id, delivery }, retried);
    },
    /** The same when its due time and its slot have come, by Redis's clock: a job that failed is due later. */
    async deliverWhenDue(jobId: string | undefined): Promise<DeliveryAnswer> {
      const { due_at } = await driver.jobOf(jobId);
      driver.stepRedisClock(Math.max(0, due_at.getTime() - Date.now()) + 1_000);
      return driver.deliver(jobId);
    },
    /** An account whose holdings (and what else `event` reads) are stored and up to date. */
    async synced(accountId: string, eventType = "ACCOUNT_HOLDINGS_UPDATED"): Promise<string> {
      const { jobId } = await driver.event(eventType, accountId);
      const { outcome } = await driver.deliver(jobId);
      if (outcome !== "done") throw new Error(`The first run of ${accountId} ended ${outcome}, expected done`);
      return accountId;
    },
    /** Calls that the simulator has seen for an account. */
    callsOf(accountId: string): { path: string; status: number | null }[] {
      return stack.snaptrade.state().calls.filter((call) => call.account === accountId);
    },
    /** The next matching calls go wrong. */
    async simulate(method: string, path: string, body: unknown): Promise<void> {
      const response = await fetch(`${stack.snaptrade.url}/_sim/${path}`, { method, body: writeWire(body) });
      if (!response.ok) throw new Error(`The simulator refused ${method} ${path}: ${await response.text()}`);
    },
    fault(match: { accountId: string; path?: string }, respond: Record<string, unknown>, times = 1): Promise<void> {
      return driver.simulate("POST", "faults", { match, respond, times });
    },
    /** One Redis command. Counts as a request at the front. */
    async redis(...command: (string | number)[]): Promise<unknown> {
      const response = await fetch(stack.redis.url, {
        method: "POST",
        headers: { Authorization: `Bearer ${stack.redis.token}` },
        body: JSON.stringify(command),
      });
      return z.object({ result: z.unknown() }).parse(await response.json()).result;
    },
    costs(): Costs {
      return {
        redis: stack.redis.requests(),
        postgres: stack.supabase.requests(),
        qstash: stack.qstash.state().requests,
        snaptrade: stack.snaptrade.state().calls.length,
      };
    },
    /** What the work cost at the fronts. */
    async costOf(work: () => Promise<unknown>): Promise<Costs> {
      const before = driver.costs();
      await work();
      const after = driver.costs();
      return {
        redis: after.redis - before.redis,
        postgres: after.postgres - before.postgres,
        qstash: after.qstash - before.qstash,
        snaptrade: after.snaptrade - before.snaptrade,
      };
    },
    logged(message: string): Record<string, unknown>[] {
      return app.log.filter((line) => line.msg === message);
    },
  };
  return driver;
}

export type Driver = Awaited<ReturnType<typeof driveService>>;

function recordPublishes(service: Service): Message[] {
  const { publisher } = service;
  const recorded: Message[] = [];
  service.publisher = {
    ...publisher,
    publish(messages) {
      recorded.push(...messages);
      return publisher.publish(messages);
    },
  };
  return recorded;
}

/** Race points that a test holds, each for the next one that comes by. */
function createGates() {
  const held = new Map<RacePoint, (() => Promise<void>)[]>();
  const add = (point: RacePoint, come: () => Promise<void>) => held.set(point, [...(held.get(point) ?? []), come]);
  return {
    async reach(point: RacePoint): Promise<void> {
      await held.get(point)?.shift()?.();
    },
    hold(point: RacePoint): Gate {
      let arrived = () => {};
      let release = () => {};
      const reached = new Promise<void>((resolve) => {
        arrived = resolve;
      });
      const opened = new Promise<void>((resolve) => {
        release = resolve;
      });
      add(point, () => {
        arrived();
        return opened;
      });
      return { reached, release };
    },
    failAt(point: RacePoint, error: Error): void {
      add(point, () => Promise.reject(error));
    },
  };
}
