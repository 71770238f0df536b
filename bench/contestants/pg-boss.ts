import { setTimeout as sleep } from "node:timers/promises";
import PgBoss from "pg-boss";
import postgres from "postgres";
import { startChild } from "@/bench/child/start-child";
import type { Contestant, Inside, Served } from "@/bench/contestant";
import { CALLS, createPace } from "@/bench/contestants/pace";
import { answerTaken } from "@/bench/contestants/plain-routes";
import { createPlainWorker, HOUR_MS, type PlainEvent, type PlainJob } from "@/bench/contestants/plain-worker";
import { wallMs, worldNow } from "@/bench/world/clock";
import { parseEnv } from "@/lib/env";

const QUEUE = "sync";
const SHARE = 0.75;
const POLL_MS = 500;
/** Longer than any run: a job's time is not lengthened while it runs. */
const EXPIRE_MS = 60_000;
const MAINTENANCE_MS = 30_000;
const RETRY_MS = 30_000;
/** The highest goes first. */
const PRIORITY = { event: 0, sweep: -1 };

export const contestant: Contestant = {
  name: "pg-boss",
  reason:
    "pg-boss 10 with a stately queue and a singleton key for each account and work type (one waiting, one active, one that " +
    "is to be retried), in a process that stays. The job is sent in the transaction of the event's row, as its db option is " +
    "meant for. It has no limiter, and its workers poll twice a second at most: so one loop fetches a job whenever the " +
    "calls of the one before fit into 0.75 of the limit. On a 429 the loop stops for as long as the provider says, and the " +
    "job is sent again for then, which spends no attempt; without access it is sent again for an hour later. Calls that a " +
    "job did not make go to the next. Eight attempts, doubling from 30 to 60 s (it adds up to as much again by chance). " +
    "A killed process's jobs stay active until they expire; as this process is the only one, it fails at " +
    "its start what is active, and they wait as failed ones do. While a job at the head of a stately queue has an active one " +
    "of its key, a fetch finds nothing at all; so after a kill all might wait for that. An event whose account waits in a sweep raises that job by SQL: no call of the " +
    "library does. Retries, expiry and maintenance are whole seconds of Postgres's clock: at scale 10 up to five are added " +
    "or lost.",
  share: SHARE,
  spacingMs: 0,
  direct: true,
  serveInside,
  start: (parts) => startChild("pg-boss", parts),
};

type Work = Omit<PlainJob, "jobId">;

async function serveInside(inside: Inside): Promise<Served> {
  const parsed = parseEnv(inside.env);
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const { env } = parsed;
  const { clock, databaseUrl, tell } = inside;
  const wholeSeconds = (worldMs: number) => Math.max(1, Math.round(wallMs(clock, worldMs) / 1000));
  const boss = new PgBoss({
    connectionString: databaseUrl,
    schedule: false,
    maintenanceIntervalSeconds: wholeSeconds(MAINTENANCE_MS),
  });
  // Each job and each event reports.
  boss.on("error", () => undefined);
  await boss.start();
  await boss.createQueue(QUEUE, {
    name: QUEUE,
    policy: "stately",
    retryLimit: env.limits.jobMaxAttempts - 1,
    retryDelay: wholeSeconds(RETRY_MS),
    retryBackoff: true,
    expireInSeconds: wholeSeconds(EXPIRE_MS),
  });
  const sql = postgres(databaseUrl, { max: 10, onnotice: () => undefined });
  const left = await sql`select id::text from pgboss.job where name = ${QUEUE} and state = 'active'`;
  const leftIds = left.map(({ id }) => String(id));
  if (leftIds.length > 0) await boss.fail(QUEUE, leftIds);
  const plain = createPlainWorker(inside, env, (provider) => provider);
  const pace = createPace(clock, env.limits, SHARE);
  const keyOf = ({ workType, accountId }: Work) => `${workType}-${accountId}`;

  /** One transaction. False: the event was there already. */
  function take({ webhookId, payload, accountId, workTypes }: PlainEvent): Promise<boolean> {
    return sql.begin(async (transaction) => {
      const db: PgBoss.Db = {
        executeSql: async (text, values) => ({
          rows: await transaction.unsafe(
            text,
            values.map((value) => value ?? null),
          ),
        }),
      };
      const stored = await transaction`
        insert into bench_events (webhook_id, payload) values (${webhookId}, ${payload})
        on conflict do nothing returning webhook_id`;
      if (stored.length === 0) return false;
      for (const workType of accountId === null ? [] : workTypes) {
        const work = { workType, accountId: accountId ?? "" };
        const options = { singletonKey: keyOf(work), priority: PRIORITY.event };
        if ((await boss.send(QUEUE, work, { ...options, db })) !== null) continue;
        await transaction`
          update pgboss.job set priority = ${PRIORITY.event}
          where name = ${QUEUE} and singleton_key = ${options.singletonKey} and state = 'created'
            and priority < ${PRIORITY.event}`;
      }
      return true;
    });
  }

  async function sendAgain(data: Work, priority: number, laterMs: number): Promise<void> {
    const startAfter = new Date(Date.now() + wallMs(clock, laterMs));
    await boss.send(QUEUE, data, { singletonKey: keyOf(data), priority, startAfter });
  }

  async function work({ id, data, priority }: PgBoss.JobWithMetadata<Work>): Promise<void> {
    const began = worldNow(clock);
    try {
      const end = await plain.run({ ...data, jobId: id });
      pace.spend(end.calls - CALLS[data.workType]);
      if (end.kind === "put_off") {
        pace.hold(end.waitMs);
        await sendAgain(data, priority, end.waitMs);
      } else if (end.kind === "failed" && end.retry === "hourly") {
        await sendAgain(data, priority, HOUR_MS);
      } else if (end.kind === "failed" && end.retry === "soon") {
        await boss.fail(QUEUE, id, { message: end.reason });
        return;
      }
      await boss.complete(QUEUE, id);
    } finally {
      tell({ is: "answered", ms: worldNow(clock) - began });
    }
  }

  async function fetchJobs(): Promise<never> {
    for (;;) {
      await pace.turn();
      const [job] = await boss.fetch<Work>(QUEUE, { includeMetadata: true });
      if (job === undefined) {
        pace.spend(-1);
        await sleep(wallMs(clock, POLL_MS));
        continue;
      }
      pace.spend(CALLS[job.data.workType] - 1);
      // What could not even be failed expires.
      work(job).catch(() => undefined);
    }
  }
  void fetchJobs();

  return {
    answer: (request) => answerTaken(request, env, () => worldNow(clock), take),
    async sweep(accountIds) {
      const works = accountIds.map((accountId): Work => ({ workType: "holdings", accountId }));
      await boss.insert(
        works.map((data) => ({ name: QUEUE, data, singletonKey: keyOf(data), priority: PRIORITY.sweep })),
      );
    },
    async jobs() {
      const [row] = await sql`
        select count(*)::int as all, count(*) filter (where state <= 'active')::int as open
        from pgboss.job where name = ${QUEUE}`;
      return { all: Number(row?.all), open: Number(row?.open) };
    },
  };
}
