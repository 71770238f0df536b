import type { Env } from "@/lib/env";

/** Above this the provider has been seen to answer 429s. */
const TRIED_PARALLELISM = 100;

/** A high estimate: 5 calls in about 10 s. Holdings are three calls; transactions are one a page. */
const CALLS_PER_RUN_MINUTE = 30;

/** The ceiling of the budget (lib/guards/lua-budget.ts): the share and 5 %, or what lateness and one slot come to. */
function mostCallsInAWindow({ rateLimit, backgroundShare }: Env["limits"]): number {
  const oneSlot = Math.max(4, Math.floor(rateLimit * 0.0125));
  return Math.floor(Math.max(rateLimit * (backgroundShare + 0.05), rateLimit * backgroundShare * (62 / 60) + oneSlot));
}

/** Settings that are allowed, and that somebody should know of: told at the start. */
export function warningsOf({ qstash, limits }: Env): string[] {
  const warnings: string[] = [];
  if (qstash.parallelism > TRIED_PARALLELISM || qstash.rate > TRIED_PARALLELISM) {
    const calls = qstash.parallelism * CALLS_PER_RUN_MINUTE;
    warnings.push(
      `SNAPTRADE_QSTASH_PARALLELISM=${qstash.parallelism}, SNAPTRADE_QSTASH_RATE=${qstash.rate} (above ` +
        `${TRIED_PARALLELISM}): ${qstash.parallelism} runs at once want about ${calls} provider calls a minute, ` +
        `${Math.round((calls / limits.rateLimit) * 100)} % of the contract's ${limits.rateLimit} ` +
        "(SNAPTRADE_RATE_LIMIT_PER_MINUTE). The budget holds the calls below it; more runs only wait for it.",
    );
  }
  const most = mostCallsInAWindow(limits);
  if (most >= limits.rateLimit) {
    warnings.push(
      `SNAPTRADE_BACKGROUND_SHARE=${limits.backgroundShare}: background work alone may make ${most} calls in a window, of ` +
        `the contract's ${limits.rateLimit} (SNAPTRADE_RATE_LIMIT_PER_MINUTE). It can be answered 429; expected less.`,
    );
  }
  if (limits.webhookMaxAgeMs > limits.retentionMs) {
    warnings.push(
      "SNAPTRADE_WEBHOOK_MAX_AGE is above SNAPTRADE_RETENTION: an event that was pruned could be accepted again.",
    );
  }
  return warnings;
}
