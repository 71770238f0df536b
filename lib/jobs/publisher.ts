import { Client, QstashError } from "@upstash/qstash";
import type { JobMessage, WorkType } from "@/lib/domain";
import type { Env } from "@/lib/env";
import { PUBLISH_TIMEOUT_MS, QSTASH_TIMEOUT_S } from "@/lib/timings";

export const FAILURE_PATH = "/api/internal/snaptrade-sync-failed";
export const SWEEP_PATH = "/api/cron/process-stale-snaptrade";

export function workerPath(workType: WorkType): string {
  return `/api/internal/process-snaptrade-${workType}-sync`;
}

/** `dedupe` is never reused: inside its window QStash would swallow a later, legitimate publish. */
type Message = { path: string; body: object; delayMs: number; dedupe: string };

/** Whether QStash took the message. "failed" covers an answer that never came: reconcile publishes again. */
export type Published = "published" | "failed";

export interface Publisher {
  /** One request whatever the number; the answers are in the order of the messages. Never throws. */
  publish(messages: Message[]): Promise<{ results: Published[]; reason: string | null }>;
  /** For health: whether QStash answers at all. */
  isReachable(): Promise<boolean>;
  /** Operators' switch: holds back or releases everything under the flow-control key. Throws where QStash refuses. */
  pause(): Promise<void>;
  resume(): Promise<void>;
}

export type { Message };

/** The message of one job delivery. No secret, nothing but names. */
export function jobMessage(job: JobMessage, delayMs: number): Message {
  const { jobId, workType, accountId, delivery } = job;
  return {
    path: workerPath(workType),
    body: { jobId, workType, accountId, delivery },
    delayMs,
    dedupe: `${jobId}-${delivery}`,
  };
}

/**
 * QStash, with the one configuration of our flow-control key (the last writer wins, so there is one writer).
 * `rate` is per second unless a period is given (QStash docs, features/flowcontrol). Destinations come from APP_URL only.
 * The client re-sends network errors for seconds and has no time limit: re-sending is off, the limit is ours.
 */
export function createPublisher(env: Env): Publisher {
  const { qstash, appUrl } = env;
  const client = new Client({
    baseUrl: qstash.url,
    token: qstash.token,
    devMode: false,
    enableTelemetry: false,
    retry: false,
  });
  const bypass: Record<string, string> = qstash.protectionBypass
    ? {
        "x-vercel-protection-bypass": qstash.protectionBypass,
        "Upstash-Failure-Callback-Forward-x-vercel-protection-bypass": qstash.protectionBypass,
      }
    : {};

  // Made anew for every call: the client writes into what it is given (measured with 2.12.0).
  function request(message: Message) {
    return {
      url: `${appUrl}${message.path}`,
      body: message.body,
      // Whole seconds, rounded up: a delivery before its slot would have to be put back.
      ...(message.delayMs > 0 ? { delay: Math.ceil(message.delayMs / 1000) } : {}),
      deduplicationId: message.dedupe,
      retries: 3,
      // 10 s, 30 s, 90 s (milliseconds; QStash docs, features/retry).
      retryDelay: "10000 * pow(3, retried)",
      timeout: QSTASH_TIMEOUT_S,
      failureCallback: `${appUrl}${FAILURE_PATH}`,
      flowControl: {
        key: qstash.flowControlKey,
        parallelism: qstash.parallelism,
        rate: qstash.rate,
        period: "1s" as const,
      },
      headers: { ...bypass },
    };
  }

  async function send(messages: Message[]): Promise<Published[]> {
    const [first] = messages;
    if (first === undefined) return [];
    if (messages.length === 1) {
      await client.publishJSON(request(first));
      return ["published"];
    }
    // A batch answers 200 with an entry for each message; one that failed has no message id.
    const entries: unknown = await client.batchJSON(messages.map(request));
    return messages.map((_, i) => (Array.isArray(entries) && hasMessageId(entries[i]) ? "published" : "failed"));
  }

  return {
    async publish(messages) {
      try {
        const results = await withTimeLimit(send(messages), PUBLISH_TIMEOUT_MS);
        return { results, reason: results.includes("failed") ? "QStash refused an entry of the batch" : null };
      } catch (error) {
        const reason = error instanceof Error ? `${error.name}: ${error.message.slice(0, 200)}` : "unknown";
        return { results: messages.map(() => "failed"), reason };
      }
    },
    async isReachable() {
      try {
        await withTimeLimit(client.flowControl.getGlobalParallelism(), PUBLISH_TIMEOUT_MS);
        return true;
      } catch (error) {
        // A refusal is an answer; only a connection that fails, or its silence, is none.
        return error instanceof QstashError && error.status !== undefined && error.status < 500;
      }
    },
    pause: () => withTimeLimit(client.flowControl.pause(qstash.flowControlKey), PUBLISH_TIMEOUT_MS),
    resume: () => withTimeLimit(client.flowControl.resume(qstash.flowControlKey), PUBLISH_TIMEOUT_MS),
  };
}

function hasMessageId(entry: unknown): boolean {
  return typeof entry === "object" && entry !== null && "messageId" in entry && typeof entry.messageId === "string";
}

async function withTimeLimit<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
