import { Redis } from "@upstash/redis";
import { startChild } from "@/bench/child/start-child";
import type { Contestant, Inside, Served } from "@/bench/contestant";
import { inParts, JOBS_A_CALL, plainPublisher, plainRoutes } from "@/bench/contestants/plain-routes";
import { createPlainWorker } from "@/bench/contestants/plain-worker";
import { sleepingProvider } from "@/bench/contestants/sleeping-provider";
import { wallMs } from "@/bench/world/clock";
import { parseEnv } from "@/lib/env";

export const contestant: Contestant = {
  name: "plan",
  reason:
    "Redis keys as first planned: SET NX EX for the event (24 h), the account's queued key and its lock (30 min); an event " +
    "that finds the queued key is skipped, a worker that finds the lock answers 200, both keys are released in finally. " +
    "QStash at 100/100, sleeping on 429 inside the worker as the SDK does, QStash's three retries. Claims are given back " +
    "where the event could not be stored.",
  share: 1,
  spacingMs: 0,
  serveInside,
  start: (parts) => startChild("plan", parts),
};

const EVENT_TTL_MS = 24 * 3_600_000;
const KEY_TTL_MS = 30 * 60_000;

async function serveInside(inside: Inside): Promise<Served> {
  const parsed = parseEnv(inside.env);
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const { url, token } = parsed.env.redis;
  const redis = new Redis({ url, token, enableTelemetry: false });
  const worker = createPlainWorker(inside, parsed.env, sleepingProvider(inside));
  const publish = plainPublisher(parsed.env, { parallelism: 100, rate: 100 });
  const claim = async (key: string, ttlMs: number) =>
    (await redis.set(key, 1, { nx: true, px: Math.ceil(wallMs(inside.clock, ttlMs)) })) !== null;

  return plainRoutes(inside, parsed.env, {
    async take(event) {
      const eventKey = `snaptrade:webhook:${event.webhookId}`;
      if (!(await claim(eventKey, EVENT_TTL_MS))) return "duplicate";
      const queued = event.workTypes.map((type) => `snaptrade:account:queued:${type}:${event.accountId}`);
      const claimed: string[] = [];
      for (const key of queued) if (await claim(key, KEY_TTL_MS)) claimed.push(key);
      if (queued.length > 0 && claimed.length === 0) return "coalesced";
      try {
        const { jobs } = await worker.takeEvent(event);
        await publish(jobs);
      } catch (error) {
        await redis.del(eventKey, ...claimed);
        throw error;
      }
      return "accepted";
    },
    async sweep(accountIds) {
      for (const part of inParts(accountIds, JOBS_A_CALL)) {
        const isFree = await Promise.all(
          part.map((id) => claim(`snaptrade:account:queued:holdings:${id}`, KEY_TTL_MS)),
        );
        await publish(await worker.makeJobs(part.filter((_, i) => isFree[i])));
      }
    },
    async work(job) {
      const lock = `snaptrade:account:lock:${job.workType}:${job.accountId}`;
      if (!(await claim(lock, KEY_TTL_MS))) return { kind: "done", calls: 0 };
      try {
        return await worker.run(job);
      } finally {
        await redis.del(lock, `snaptrade:account:queued:${job.workType}:${job.accountId}`);
      }
    },
  });
}
