import { isAway } from "@/lib/guards/redis-scripts";
import { acceptBulk } from "@/lib/jobs/accept-bulk";
import { publishJobs } from "@/lib/jobs/publish-jobs";
import { watchLimits } from "@/lib/jobs/watch-limits";
import type { AccountDetail, Connection, Failure, ProviderUser } from "@/lib/provider/provider";
import { decryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";

export type Listing =
  /** `accepted`: jobs of keys that are behind; where others got no slot, the user's listing is not marked as done. */
  | { kind: "listed"; connections: number; accounts: number; behind: number; accepted: number }
  /** The budget has no two calls free now. */
  | { kind: "no_budget" }
  | { kind: "failed"; what: "connections" | "accounts"; failure: Failure };

/**
 * Reads a user's connections and accounts (two budgeted calls), stores them, and accepts jobs for the keys whose upstream
 * data moved on while no webhook came: lost webhooks are normal. A listing removes nothing (I7).
 * `onRead`: runs when SnapTrade has answered both, so has accepted the secret, and before anything is stored or queued.
 */
export async function listUser(
  service: Service,
  user: { userId: string; secretCiphertext: string },
  signal: AbortSignal,
  onRead: () => Promise<void> = async () => {},
): Promise<Listing> {
  const asked = {
    userId: user.userId,
    userSecret: decryptSecret(user.secretCiphertext, service.env.snaptrade.secretsKeys, user.userId),
  };
  // What it finds needs calls too, and a backlog has none: calls that others did not make say nothing about that.
  const free = await service.guards.reserveCallsNow(2, { spares: false });
  if (free.calls < 2) return { kind: "no_budget" };
  const readAt = new Date(service.clock()).toISOString();
  const lists = await readLists(service, asked, signal);
  if (lists.kind === "failed") return lists;
  await onRead();
  const { connections, accounts } = lists;
  const { behind } = await service.store.putListing({
    userId: user.userId,
    readAt,
    connections,
    accounts,
  });
  await service.reach("reconcile:user-listed");
  const bulk = await acceptBulk(service, "reconcile", behind);
  if (!isAway(bulk)) {
    await publishJobs(service, bulk.publish, bulk.waits);
    // A listing that was due stays due: else nobody would come to those without a slot for a day.
    if (bulk.taken === behind.length) await service.store.markListed({ userId: user.userId });
    await service.reach("reconcile:marked");
  }
  return {
    kind: "listed",
    connections: connections.length,
    accounts: accounts.length,
    behind: behind.length,
    accepted: isAway(bulk) ? 0 : bulk.publish.length,
  };
}

type Lists =
  | { kind: "read"; connections: Connection[]; accounts: AccountDetail[] }
  | Extract<Listing, { kind: "failed" }>;

/** Both lists, or the first failure. What the answers said is counted either way. */
async function readLists(service: Service, user: ProviderUser, signal: AbortSignal): Promise<Lists> {
  const watch = watchLimits(service, "", service.env.limits.rateLimit);
  try {
    const connections = await watch.see(await service.provider.listConnections(user, signal));
    if (connections.kind !== "ok") return { kind: "failed", what: "connections", failure: connections };
    const accounts = await watch.see(await service.provider.listAccounts(user, signal));
    if (accounts.kind !== "ok") return { kind: "failed", what: "accounts", failure: accounts };
    return { kind: "read", connections: connections.value, accounts: accounts.value };
  } finally {
    await service.guards.count(watch.counts);
  }
}
