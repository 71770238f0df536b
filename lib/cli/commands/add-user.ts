import { listWhenFree } from "@/lib/cli/list-when-free";
import type { Report, Tools } from "@/lib/cli/report";
import { counted } from "@/lib/cli/text";
import type { UserEntry } from "@/lib/cli/user-lines";
import { releaseWaiting } from "@/lib/jobs/release-waiting";
import { encryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";

/** What was there: nobody, a user who had been removed, or one with a secret. */
type Before = "nothing" | "removed" | "stored";

export type AddedUser =
  | {
      kind: "listed";
      before: Before;
      created: boolean;
      connections: number;
      accounts: number;
      /** First jobs accepted, and keys that got no slot: the sweep comes to those. */
      jobs: number;
      left: number;
      released: number;
    }
  | { kind: "not_listed"; before: Before; created: boolean; reason: string };

/** Waiting events that one call releases. */
const PAGE = 100;

/**
 * Stores a user with its secret encrypted (I10), reads its connections and accounts through the budget, accepts their
 * first jobs, and releases the events that waited for them. Repeating it is harmless.
 *
 * A user who is known keeps the secret that works until SnapTrade has accepted the new one. A new user is stored first and
 * stays stored if the listing fails: reconcile lists it when an event comes, and once a day.
 */
export async function addUser(tools: Tools, user: UserEntry, waitMs: number): Promise<AddedUser> {
  const { service } = tools;
  const { userId, userSecret, authUserId } = user;
  const secretCiphertext = encryptSecret(userSecret, service.env.snaptrade.secretsKeys, userId);
  const store = async () => {
    await service.store.putUser({ userId, secretCiphertext, ...(authUserId === undefined ? {} : { authUserId }) });
  };
  const before = await whatIsThere(service, userId);
  if (before !== "stored") await store();
  const listing = await listWhenFree(
    tools,
    { userId, secretCiphertext },
    waitMs,
    before === "stored" ? store : undefined,
  );
  const created = before === "nothing";
  if (listing.kind === "not_listed") return { ...listing, before, created };
  let released = 0;
  for (let last = PAGE; last === PAGE; released += last) {
    last = await releaseWaiting(service, { userId, limit: PAGE });
  }
  const { connections, accounts, behind, accepted } = listing;
  return { kind: "listed", before, created, connections, accounts, jobs: accepted, left: behind - accepted, released };
}

async function whatIsThere({ store }: Service, userId: string): Promise<Before> {
  const { user } = await store.findUser({ userId });
  if (user === null) return "nothing";
  return user.removed || !user.hasSecret ? "removed" : "stored";
}

const STORED: Record<Before, string> = {
  nothing: "is added",
  removed: "was removed; added again",
  stored: "was known; its secret is replaced",
};

export async function addUserCommand(tools: Tools, user: UserEntry, waitMs: number): Promise<Report> {
  const added = await addUser(tools, user, waitMs);
  const { userId } = user;
  if (added.kind === "not_listed") {
    const error = `${userId} ${notListed(added)}. Mend that and repeat the command.`;
    return { exit: 1, document: { userId, created: added.created, before: added.before, error }, text: error };
  }
  const { kind: _, ...facts } = added;
  return { exit: 0, document: { userId, ...facts }, text: `${userId} ${STORED[added.before]}. ${listed(facts)}` };
}

/** Why a user's accounts were not read, and what stands of it. */
export function notListed({ before, reason }: Extract<AddedUser, { kind: "not_listed" }>): string {
  const stands =
    before === "stored"
      ? "is known and keeps its old secret: with the new one its accounts were not read"
      : `${STORED[before]}, but its accounts were not read`;
  return `${stands}: ${reason}`;
}

export function listed(facts: { connections: number; accounts: number; jobs: number; left: number; released: number }) {
  const { connections, accounts, jobs, left, released } = facts;
  const later = left > 0 ? ` ${left} more had no slot now: the sweep queues what was never read within 15 min.` : "";
  return (
    `${counted(connections, "connection")}, ${counted(accounts, "account")}; ` +
    `${counted(jobs, "first job")} queued, ${counted(released, "waiting event")} released.${later}`
  );
}
