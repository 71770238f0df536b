import type { AttemptOutcome } from "@/sandbox/qstash/attempt";
import { ONE_DAY_MS, retryAfterMs } from "@/sandbox/qstash/retry-after";
import type { RetryDelay } from "@/sandbox/qstash/retry-delay-expression";

export type RetryDecision = { kind: "delivered" } | { kind: "retry"; delayMs: number } | { kind: "failed" };

export type RetryPolicy = { retried: number; maxRetries: number; retryDelay: RetryDelay | undefined };

/**
 * What follows an attempt (QStash docs, features/retry): only 2xx is success; 489 with `Upstash-NonRetryable-Error: true` fails at
 * once; everything else is tried again while retries are left.
 */
export function decideRetry(outcome: AttemptOutcome, policy: RetryPolicy, wallNow: number): RetryDecision {
  const { retried, maxRetries } = policy;
  if (outcome.kind === "answer") {
    if (outcome.status >= 200 && outcome.status <= 299) return { kind: "delivered" };
    const refusesRetry = outcome.headers["upstash-nonretryable-error"]?.[0]?.trim().toLowerCase() === "true";
    if (outcome.status === 489 && refusesRetry) return { kind: "failed" };
  }
  if (retried >= maxRetries) return { kind: "failed" };
  const asked = outcome.kind === "answer" ? retryAfterMs(outcome.headers, wallNow) : undefined;
  return { kind: "retry", delayMs: asked ?? backoffMs(policy) };
}

/** The message's own expression, else min(86400, e^(2.5 n)) seconds before retry n. Both stay between 0 and one day. */
function backoffMs({ retried, retryDelay }: RetryPolicy): number {
  const own = retryDelay?.evaluate(retried);
  const wait = own !== undefined && Number.isFinite(own) ? own : 1_000 * Math.exp(2.5 * (retried + 1));
  return Math.min(Math.max(0, wait), ONE_DAY_MS);
}
