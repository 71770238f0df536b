import { field } from "@/lib/metrics/metric-names";
import type { Answer } from "@/lib/provider/provider";
import type { Service } from "@/lib/service";
import type { Counts } from "@/lib/snaptrade-webhook-guards";

/** How much of the limit must stay free for others, below it the budget holds: the 5 % between share and ceiling. */
const RESERVE = 0.05;

/**
 * Tells the budget what the provider's answers say, at once where it matters to others (a 429, few calls left, another
 * limit) and in `counts` where it does not. One a run: a hold or a limit that was told is not told again. `rose`: this run was
 * the first to tell of a higher limit.
 */
export function watchLimits(service: Service, accountId: string, limitInForce: number) {
  const { rateLimit, rateWindowMs } = service.env.limits;
  const counts: Counts = {};
  let told = limitInForce;
  let held = false;
  let rose = false;

  async function see<T>(answer: Answer<T>): Promise<Answer<T>> {
    const counted = field("provider_responses", answer.status);
    counts[counted] = (counts[counted] ?? 0) + 1;
    const { limit, remaining, resetSeconds } = answer.limits;
    const inForce = limit === undefined ? told : Math.min(limit, rateLimit);
    const changed = inForce !== told;
    const low = !held && remaining !== undefined && remaining < inForce * RESERVE;
    const throttled = answer.kind === "throttled" && answer.scope !== "connection" ? answer : null;
    if (!changed && !low && throttled === null) return answer;
    const before = told;
    told = inForce;
    held ||= low;
    const longest = rateWindowMs / 4;
    const usual = Math.min(longest, Math.max(1000, (resetSeconds ?? longest / 1000) * 1000));
    // A limit that fell below what the last window holds: nothing is free until enough of those calls have left it.
    const passed = rateWindowMs * Math.max(0, 1 - told / before);
    const holdMs = low ? Math.ceil(Math.max(usual, passed)) : 0;
    if (throttled !== null) {
      service.logger.warn(
        { accountId, scope: throttled.scope, retryAfterMs: throttled.retryAfterMs, warning: throttled.warning },
        "SnapTrade answered 429",
      );
    }
    const isRise = await service.guards.observeLimits({
      accountId,
      ...(limit === undefined ? {} : { limit }),
      holdMs,
      cooldownMs: throttled?.scope === "client" ? throttled.retryAfterMs : 0,
      accountCooldownMs: throttled?.scope === "account" ? throttled.retryAfterMs : 0,
      counts: {},
    });
    rose ||= isRise;
    await service.reach("run:limits-told");
    return answer;
  }

  return { see, counts, rose: () => rose };
}

export type LimitWatch = ReturnType<typeof watchLimits>;
