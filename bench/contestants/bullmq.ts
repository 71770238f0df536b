import { randomUUID } from "node:crypto";
import { Queue, UnrecoverableError, Worker } from "bullmq";
import { startChild } from "@/bench/child/start-child";
import type { Contestant, Inside, Served } from "@/bench/contestant";
import { CALLS } from "@/bench/contestants/pace";
import { readPlainEvent } from "@/bench/contestants/plain-routes";
import { createPlainWorker, HOUR_MS, type PlainJob } from "@/bench/contestants/plain-worker";
import { wallMs, worldNow } from "@/bench/world/clock";
import { parseEnv } from "@/lib/env";
import { answer } from "@/lib/http/answer";

const SHARE = 0.75;
const CONCURRENCY = 100;
const RETRY_MS = 60_000;
const STALLED_MS = 30_000;
/** A job without a priority goes before all that have one. */
const SWEEP_PRIORITY = 10;

export const contestant: Contestant = {
  name: "bullmq",
  reason:
    "BullMQ 6 with a worker in a process that stays: deduplication by key with keepLastIfActive (one active and one waiting " +
    "job a key). Its limiter counts jobs in fixed windows, so it lets one job go at a time, and each job that begins holds " +
    "the next one back for as long as its calls take of 0.75 of the limit; larger windows would let two bursts fall into one " +
    "rolling minute. What a job did not call cannot be given back: the limiter is a key that expires. On a 429 the queue " +
    "stops for as long as the provider says, by the rate-limit error, which spends no attempt. Eight attempts, doubling from " +
    "a minute; without access an hour later. " +
    "The event's row is written first, as everywhere; row and job stand in two stores, so a kill between them loses the " +
    "event. Sweeps have a low priority, and an event of an account that waits in one raises its job. In-process, it pays no " +
    "HTTP hop for a job.",
  share: SHARE,
  spacingMs: 0,
  direct: true,
  serveInside,
  start: (parts) => startChild("bullmq", parts),
};

class WithoutAccess extends Error {}

type Work = Omit<PlainJob, "jobId">;

async function serveInside(inside: Inside): Promise<Served> {
  const parsed = parseEnv(inside.env);
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const { env } = parsed;
  const { clock, tell } = inside;
  const wall = (worldMs: number) => Math.ceil(wallMs(clock, worldMs));
  const connection = { url: inside.redisUrl, maxRetriesPerRequest: null };
  const queue = new Queue<Work>("sync", {
    connection,
    defaultJobOptions: {
      attempts: env.limits.jobMaxAttempts,
      backoff: { type: "custom" },
      removeOnComplete: true,
      removeOnFail: 10_000,
    },
  });
  const plain = createPlainWorker(inside, env, (provider) => provider);
  const callMs = env.limits.rateWindowMs / (SHARE * env.limits.rateLimit);
  const backoffMs = (attempts: number, _type?: string, error?: Error) =>
    wall(error instanceof WithoutAccess ? HOUR_MS : RETRY_MS * 2 ** (attempts - 1));
  let heldUntilMs = 0;
  const seen = new Set<string>();

  /** Never for less than another job asked for. */
  async function holdBack(ms: number): Promise<void> {
    const nowMs = worldNow(clock);
    heldUntilMs = Math.max(heldUntilMs, nowMs + ms);
    await queue.rateLimit(wall(heldUntilMs - nowMs));
  }

  async function work(job: { id?: string; data: Work }): Promise<void> {
    const began = worldNow(clock);
    seen.add(job.id ?? "");
    try {
      await holdBack(CALLS[job.data.workType] * callMs);
      const end = await plain.run({ ...job.data, jobId: randomUUID() });
      if (end.kind === "put_off") {
        await holdBack(end.waitMs);
        throw Worker.RateLimitError();
      }
      if (end.kind === "failed" && end.retry === "never") throw new UnrecoverableError(end.reason);
      if (end.kind === "failed") throw end.retry === "hourly" ? new WithoutAccess(end.reason) : new Error(end.reason);
    } finally {
      tell({ is: "answered", ms: worldNow(clock) - began });
    }
  }

  const worker = new Worker<Work>("sync", work, {
    connection,
    concurrency: CONCURRENCY,
    limiter: { max: 1, duration: wall(callMs) },
    settings: { backoffStrategy: backoffMs },
    lockDuration: wall(STALLED_MS),
    stalledInterval: wall(STALLED_MS),
  });
  // Each job and each event reports.
  queue.on("error", () => undefined);
  worker.on("error", () => undefined);
  await worker.waitUntilReady();

  return {
    async answer(request) {
      const event = await readPlainEvent(request, env, () => worldNow(clock));
      if (event === null) return answer(401, { error: "no event" });
      const { webhookId, accountId, workTypes } = event;
      const { isNew } = await plain.takeEvent({ ...event, workTypes: [] });
      for (const workType of isNew && accountId !== null ? workTypes : []) {
        const id = `${workType}-${accountId}`;
        const data = { workType, accountId: accountId ?? "" };
        // Where one waits already, it is that one.
        const added = await queue.add("sync", data, { deduplication: { id, keepLastIfActive: true } });
        const waiting = await queue.getJob(added.id ?? "");
        if (waiting?.opts.priority === SWEEP_PRIORITY) await waiting.changePriority({ priority: 0 });
      }
      return answer(200, { outcome: isNew ? "accepted" : "duplicate", webhookId });
    },
    async sweep(accountIds) {
      await queue.addBulk(
        accountIds.map((accountId) => ({
          name: "sync",
          data: { workType: "holdings", accountId },
          opts: {
            priority: SWEEP_PRIORITY,
            deduplication: { id: `holdings-${accountId}`, keepLastIfActive: true },
          },
        })),
      );
    },
    async jobs() {
      const counts = await queue.getJobCounts("wait", "active", "delayed", "prioritized");
      return { all: seen.size, open: Object.values(counts).reduce((sum, count) => sum + count, 0) };
    },
  };
}
