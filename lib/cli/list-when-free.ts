import ms from "ms";
import type { Tools } from "@/lib/cli/report";
import { isAway } from "@/lib/guards/redis-scripts";
import { type Listing, listUser } from "@/lib/jobs/list-users";
import { BUSY_MS } from "@/lib/jobs/run-end";
import type { Failure } from "@/lib/provider/provider";
import type { Service } from "@/lib/service";
import { RUN_DEADLINE_MS } from "@/lib/timings";

type Listed = Extract<Listing, { kind: "listed" }>;

/** How often a free place in the budget is looked for: one small Redis call. */
const LOOK_MS = 2_000;

/**
 * Lists a user's connections and accounts as soon as the budget has two calls free, and waits at most `waitMs` for it.
 * What no waiting can mend ends it at once. `onRead`: as `listUser` has it.
 */
export async function listWhenFree(
  { service, terminal }: Tools,
  user: { userId: string; secretCiphertext: string },
  waitMs: number,
  onRead?: () => Promise<void>,
): Promise<Listed | { kind: "not_listed"; reason: string }> {
  const until = service.clock() + waitMs;
  let told = "";
  for (;;) {
    const listing = await listUser(service, user, service.deadline(RUN_DEADLINE_MS), onRead);
    if (listing.kind === "listed") return listing;
    const { reason, againInMs } = listing.kind === "no_budget" ? await whyNoBudget(service) : obstacle(listing.failure);
    if (againInMs === null) return { kind: "not_listed", reason };
    if (service.clock() + againInMs > until) {
      return {
        kind: "not_listed",
        reason: `${reason}, and waiting longer than ${ms(waitMs)} was not asked for (--wait)`,
      };
    }
    if (told !== reason) terminal.note(`${reason}; waiting, at most ${ms(until - service.clock())}`);
    told = reason;
    await terminal.wait(againInMs);
  }
}

type Obstacle = { reason: string; againInMs: number | null };

async function whyNoBudget(service: Service): Promise<Obstacle> {
  const guards = await service.guards.read();
  if (isAway(guards)) {
    return { reason: "Redis gave no answer: check UPSTASH_REDIS_REST_URL and its token", againInMs: null };
  }
  if (guards.cooldownMs > 0)
    return { reason: "SnapTrade is in a cooldown after a 429", againInMs: Math.max(LOOK_MS, guards.cooldownMs) };
  return { reason: "The budget of provider calls has none free", againInMs: LOOK_MS };
}

function obstacle(failure: Failure): Obstacle {
  switch (failure.kind) {
    case "throttled":
      return { reason: "SnapTrade answered 429", againInMs: Math.max(LOOK_MS, failure.retryAfterMs) };
    case "busy":
      return { reason: "SnapTrade is busy syncing this connection", againInMs: BUSY_MS };
    case "unauthorized":
      return final(
        `SnapTrade refused (${failure.status}, ${failure.reason}): the secret is not this user's, or SNAPTRADE_CLIENT_ID ` +
          "and SNAPTRADE_CONSUMER_KEY belong to another client",
      );
    case "gone":
      return final("SnapTrade does not know this user (404)");
    case "refused":
    case "failed":
      return final(`SnapTrade answered ${failure.status || "nothing"}: ${failure.reason}`);
    case "unsupported":
      return final("SnapTrade answered 501");
    case "aborted":
      return final(`SnapTrade did not answer within ${ms(RUN_DEADLINE_MS)}`);
  }
}

function final(reason: string): Obstacle {
  return { reason, againInMs: null };
}
