import { Client } from "@upstash/qstash";
import postgres from "postgres";
import type { Inside, Served } from "@/bench/contestant";
import { type PlainEvent, type PlainJob, plainJob, type RunEnd } from "@/bench/contestants/plain-worker";
import { worldNow } from "@/bench/world/clock";
import { WORK_TYPES } from "@/lib/domain";
import type { Env } from "@/lib/env";
import { answer } from "@/lib/http/answer";
import { verifyQStash } from "@/lib/http/qstash-auth";
import { workerPath } from "@/lib/jobs/publisher";
import { effectOf } from "@/lib/webhook/event-effects";
import { parseWebhookJson } from "@/lib/webhook/json-text";
import { parseEvent } from "@/lib/webhook/parse-event";
import { readBody } from "@/lib/webhook/read-body";
import { verifyWebhook } from "@/lib/webhook/verify-signature";

export type PlainHandlers = {
  /** Answers the outcome. @throws what makes the event come again */
  take(event: PlainEvent): Promise<"accepted" | "coalesced" | "duplicate">;
  /** What did not end well QStash delivers again. */
  work(job: PlainJob): Promise<RunEnd>;
  /** Makes the jobs of a sweep. */
  sweep(accountIds: readonly string[]): Promise<void>;
};

/** Jobs made in one call, so that it ends within its time limit. */
export const JOBS_A_CALL = 100;

/** The two routes of a contestant over QStash; signatures and events are read by the service's own code. */
export function plainRoutes({ clock, databaseUrl }: Inside, env: Env, handlers: PlainHandlers): Served {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });

  async function intake(request: Request): Promise<Response> {
    const event = await readPlainEvent(request, env, () => worldNow(clock));
    if (event === null) return answer(401, { error: "no event" });
    return answer(200, { outcome: await handlers.take(event), webhookId: event.webhookId });
  }

  async function worker(path: string, request: Request): Promise<Response> {
    const check = await verifyQStash(request, { ...env.qstash, url: `${env.appUrl}${path}` });
    if (check.kind === "unauthorized") return answer(401, { error: "unauthorized" });
    const end = await handlers.work(plainJob.parse(JSON.parse(check.text)));
    return end.kind === "done" ? answer(200, { ok: true }) : answer(500, { error: end.kind });
  }

  return {
    async answer(request) {
      const { pathname } = new URL(request.url);
      try {
        if (pathname === "/api/snaptrade/webhook") return await intake(request);
        if (WORK_TYPES.some((type) => workerPath(type) === pathname)) return await worker(pathname, request);
        return answer(404, { error: "no such route" });
      } catch (error) {
        return answer(500, { error: error instanceof Error ? error.message : "unexpected" });
      }
    },
    sweep: handlers.sweep,
    async jobs() {
      const [row] = await sql`select count(*)::int as all from bench_jobs`;
      // What QStash does not carry any more is never run.
      return { all: Number(row?.all), open: 0 };
    },
  };
}

/** A signed event of one account, or of none; null where the signature is not genuine. */
export async function readPlainEvent(request: Request, env: Env, now: () => number): Promise<PlainEvent | null> {
  const body = await readBody(request);
  if (body.kind !== "ok") return null;
  const parsed = parseWebhookJson(body.bytes);
  if (parsed.kind === "bad") return null;
  const signature = request.headers.get("signature");
  const { consumerKeys } = env.snaptrade;
  if (!verifyWebhook({ signature, bytes: body.bytes, value: parsed.value, consumerKeys })) return null;
  const read = parseEvent(parsed.value, now(), env.limits.webhookMaxAgeMs);
  if (read.kind !== "event") return null;
  const { webhookId, payload, accountId } = read.event;
  const effect = effectOf(read.event);
  return { webhookId, payload, accountId, workTypes: effect.kind === "account" ? effect.workTypes : [] };
}

export function inParts<T>(list: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < list.length; from += size) parts.push(list.slice(from, from + size));
  return parts;
}

/** The intake of a queue that keeps the event's row and its job together. `take`: false for an event that it knows. */
export async function answerTaken(
  request: Request,
  env: Env,
  now: () => number,
  take: (event: PlainEvent) => Promise<boolean>,
): Promise<Response> {
  const event = await readPlainEvent(request, env, now);
  if (event === null) return answer(401, { error: "no event" });
  const isNew = await take(event);
  return answer(200, { outcome: isNew ? "accepted" : "duplicate", webhookId: event.webhookId });
}

/** Publishes jobs under one flow-control key, with QStash's own three retries. */
export function plainPublisher(env: Env, { parallelism, rate }: { parallelism: number; rate: number }) {
  const { url, token, flowControlKey } = env.qstash;
  const client = new Client({ baseUrl: url, token, devMode: false, enableTelemetry: false });
  const messageOf = (job: PlainJob) => ({
    url: `${env.appUrl}${workerPath(job.workType)}`,
    body: job,
    retries: 3,
    flowControl: { key: flowControlKey, parallelism, rate, period: "1s" as const },
  });
  return async (jobs: readonly PlainJob[]): Promise<void> => {
    for (const some of inParts(jobs, JOBS_A_CALL)) await client.batchJSON(some.map(messageOf));
  };
}
