import { answer } from "@/lib/http/answer";
import { RETRY_AFTER_S } from "@/lib/timings";

/** Every way a delivery can end. */
export type RunOutcome =
  | "done"
  | "deferred"
  | "already_active"
  | "gone"
  | "overtaken"
  | "failed"
  | "dead"
  | "unexpected"
  | "redis_away"
  | "postgres_away";

/**
 * What QStash is told. 200 wherever the next step is already decided: a retry of this message could do nothing. 503 where
 * this very message should come again (its number is still the newest), or where somebody should see a fault.
 */
export function workerAnswer(outcome: RunOutcome): Response {
  switch (outcome) {
    case "done":
    case "deferred":
    case "already_active":
    case "gone":
    case "overtaken":
    case "failed":
    case "dead":
      return answer(200, { outcome });
    case "unexpected":
    case "redis_away":
    case "postgres_away":
      return answer(503, { outcome }, { "Retry-After": String(RETRY_AFTER_S) });
  }
}

/** QStash, features/retry: no retry can mend this message. */
export function notRetryable(reason: string): Response {
  return answer(489, { error: reason }, { "Upstash-NonRetryable-Error": "true" });
}
