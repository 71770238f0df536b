import { randomUUID } from "node:crypto";
import { Logger, run, runMigrations, type Task } from "graphile-worker";
import postgres from "postgres";
import { z } from "zod";
import { startChild } from "@/bench/child/start-child";
import type { Contestant, Inside, Served } from "@/bench/contestant";
import { CALLS, createPace } from "@/bench/contestants/pace";
import { answerTaken } from "@/bench/contestants/plain-routes";
import { createPlainWorker, HOUR_MS, type PlainEvent, plainJob } from "@/bench/contestants/plain-worker";
import { wallMs, worldNow } from "@/bench/world/clock";
import { parseEnv } from "@/lib/env";

const TASK = "sync";
const SHARE = 0.75;
const CONCURRENCY = 32;
const POLL_MS = 2_000;
const RETRY_MS = 60_000;
/** The lowest goes first. */
const PRIORITY = { event: 0, sweep: 10 };

export const contestant: Contestant = {
  name: "graphile-worker",
  reason:
    "graphile-worker 0.16 in a process that stays: a job_key for each account and work type with preserve_run_at (replace " +
    "would send an account to the end with each of its events), a queue for each account, the job added in the transaction " +
    "of the event's row. An event that comes while its job runs makes another, which waits for the queue. It has no " +
    "limiter; forbiddenFlags, which is asked before a worker looks for a job and is what its docs name for rate limits, " +
    "lets one worker after another look whenever the calls of the job before fit into 0.75 of the limit. On a 429 none " +
    "looks for as long as the provider says, and the job is added again for then. Its own backoff (e^n seconds of " +
    "Postgres's clock) cannot be set: a failed job is added again for a minute later, doubling, eight attempts (without access an hour later), and calls " +
    "that it did not make go to the next. A sweep " +
    "adds with unsafe_dedupe, so that it does not put an event's job back. A killed process's jobs and queues stay locked " +
    "for four hours; as this process is the only one, it unlocks at its start all that is locked, with the function that " +
    "the docs give. Several processes would have to know first which of them are dead.",
  share: SHARE,
  spacingMs: 0,
  direct: true,
  serveInside,
  start: (parts) => startChild("graphile-worker", parts),
};

const work = plainJob.omit({ jobId: true }).extend({ failures: z.number() });
type Work = z.infer<typeof work>;

async function serveInside(inside: Inside): Promise<Served> {
  const parsed = parseEnv(inside.env);
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const { env } = parsed;
  const { clock, databaseUrl, tell } = inside;
  const sql = postgres(databaseUrl, { max: 10, onnotice: () => undefined });
  const plain = createPlainWorker(inside, env, (provider) => provider);
  const pace = createPace(clock, env.limits, SHARE);
  const seen = new Set<string>();

  /** At once, or so much later. */
  async function add(db: postgres.ISql, given: Work, priority: number, laterMs = 0): Promise<void> {
    const runAt = laterMs === 0 ? null : new Date(Date.now() + wallMs(clock, laterMs));
    await db`
      select graphile_worker.add_job(${TASK}, payload := ${sql.json(given)}::json, queue_name := ${given.accountId},
        run_at := ${runAt}, max_attempts := ${env.limits.jobMaxAttempts}, priority := ${priority},
        job_key := ${`${given.workType}-${given.accountId}`}, job_key_mode := 'preserve_run_at')`;
  }

  /** One transaction. False: the event was there already. */
  function take({ webhookId, payload, accountId, workTypes }: PlainEvent): Promise<boolean> {
    return sql.begin(async (transaction) => {
      const stored = await transaction`
        insert into bench_events (webhook_id, payload) values (${webhookId}, ${payload})
        on conflict do nothing returning webhook_id`;
      if (stored.length === 0) return false;
      for (const workType of accountId === null ? [] : workTypes) {
        await add(transaction, { workType, accountId: accountId ?? "", failures: 0 }, PRIORITY.event);
      }
      return true;
    });
  }

  const sync: Task<typeof TASK> = async (payload, { job }) => {
    const began = worldNow(clock);
    const given = work.parse(payload);
    pace.spend(CALLS[given.workType] - 1);
    seen.add(job.id);
    try {
      const end = await plain.run({ ...given, jobId: randomUUID() });
      const failures = given.failures + 1;
      if (end.kind === "put_off") {
        pace.hold(end.waitMs);
        await add(sql, given, job.priority, end.waitMs);
      } else if (end.kind === "failed" && end.retry !== "never" && failures < env.limits.jobMaxAttempts) {
        const laterMs = end.retry === "hourly" ? HOUR_MS : RETRY_MS * 2 ** given.failures;
        await add(sql, { ...given, failures }, job.priority, laterMs);
      }
      pace.spend(end.calls - CALLS[given.workType]);
    } finally {
      tell({ is: "answered", ms: worldNow(clock) - began });
    }
  };

  const silent = new Logger(() => () => undefined);
  await runMigrations({ connectionString: databaseUrl, logger: silent });
  await sql`
    select graphile_worker.force_unlock_workers(array(
      select distinct locked_by from graphile_worker.jobs where locked_by is not null))`;
  await run({
    connectionString: databaseUrl,
    concurrency: CONCURRENCY,
    pollInterval: wallMs(clock, POLL_MS),
    forbiddenFlags: async () => {
      await pace.turn();
      return null;
    },
    taskList: { [TASK]: sync },
    parsedCronItems: [],
    noHandleSignals: true,
    logger: silent,
  });

  return {
    answer: (request) => answerTaken(request, env, () => worldNow(clock), take),
    async sweep(accountIds) {
      await sql`
        select graphile_worker.add_job(${TASK},
          payload := json_build_object('workType', 'holdings', 'accountId', account_id, 'failures', 0),
          queue_name := account_id, max_attempts := ${env.limits.jobMaxAttempts}, priority := ${PRIORITY.sweep},
          job_key := 'holdings-' || account_id, job_key_mode := 'unsafe_dedupe')
        from unnest(${sql.array([...accountIds])}::text[]) as account_id`;
    },
    async jobs() {
      const [row] = await sql`
        select count(*)::int as open from graphile_worker.jobs where attempts < max_attempts or locked_at is not null`;
      return { all: seen.size, open: Number(row?.open) };
    },
  };
}
