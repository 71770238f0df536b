import { isAway } from "@/lib/guards/redis-scripts";
import { acceptBulk } from "@/lib/jobs/accept-bulk";
import { publishJobs } from "@/lib/jobs/publish-jobs";
import { watchLimits } from "@/lib/jobs/watch-limits";
import type { Failure } from "@/lib/provider/provider";
import { decryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";

export type Listing =
  /** `accepted`: jobs of keys that are behind; the rest got no slot, and the sweep comes to them. */
  | { kind: "listed"; connections: number; accounts: number; behind: number; accepted: number }
  /** The budget has no two calls free now. */
  | { kind: "no_budget" }
  | { kind: "failed"; what: "connections" | "accounts"; failure: Failure };

/**
 * Reads a user's connections and accounts (two budgeted calls), stores them, and accepts jobs for the keys whose upstream
 * data moved on while no webhook came: lost webhooks are normal. A listing removes nothing (I7).
 */
export async function listUser(
  service: Service,
  user: { userId: string; secretCiphertext: string },
  signal: AbortSignal,
): Promise<Listing> {
  if ((await service.guards.reserveCallsNow(2)) < 2) return { kind: "no_budget" };
  const asked = {
    userId: user.userId,
    userSecret: decryptSecret(user.secretCiphertext, service.env.snaptrade.secretsKeys, user.userId),
  };
  const watch = watchLimits(service, "", service.env.limits.rateLimit);
  const connections = await watch.see(await service.provider.listConnections(asked, signal));
  if (connections.kind !== "ok") return { kind: "failed", what: "connections", failure: connections };
  const accounts = await watch.see(await service.provider.listAccounts(asked, signal));
  if (accounts.kind !== "ok") return { kind: "failed", what: "accounts", failure: accounts };
  const { behind } = await service.store.putListing({
    userId: user.userId,
    connections: connections.value,
    accounts: accounts.value,
  });
  const bulk = await acceptBulk(service, "reconcile", behind);
  if (!isAway(bulk)) await publishJobs(service, bulk.publish, bulk.waits);
  return {
    kind: "listed",
    connections: connections.value.length,
    accounts: accounts.value.length,
    behind: behind.length,
    accepted: isAway(bulk) ? 0 : bulk.publish.length,
  };
}
