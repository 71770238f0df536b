import { listWhenFree } from "@/lib/cli/list-when-free";
import type { Report, Tools } from "@/lib/cli/report";
import { counted } from "@/lib/cli/text";
import type { UserEntry } from "@/lib/cli/user-lines";
import { releaseWaiting } from "@/lib/jobs/release-waiting";
import { encryptSecret } from "@/lib/secrets";

/** `created`: false where the user was known and its secret is replaced. */
export type AddedUser =
  | {
      kind: "listed";
      created: boolean;
      connections: number;
      accounts: number;
      /** First jobs accepted, and keys that got no slot: the sweep comes to those. */
      jobs: number;
      left: number;
      released: number;
    }
  | { kind: "not_listed"; created: boolean; reason: string };

/** Waiting events that one call releases. */
const PAGE = 100;

/**
 * Stores a user with its secret encrypted (I10), reads its connections and accounts through the budget, accepts their
 * first jobs, and releases the events that waited for them. Repeating it is harmless and replaces the secret. What is
 * stored stays stored if the listing fails: reconcile lists the user when an event comes, and once a day.
 */
export async function addUser(tools: Tools, user: UserEntry, waitMs: number): Promise<AddedUser> {
  const { service } = tools;
  const { userId, userSecret, authUserId } = user;
  const secretCiphertext = encryptSecret(userSecret, service.env.snaptrade.secretsKeys, userId);
  const { created } = await service.store.putUser({
    userId,
    secretCiphertext,
    ...(authUserId === undefined ? {} : { authUserId }),
  });
  const listing = await listWhenFree(tools, { userId, secretCiphertext }, waitMs);
  if (listing.kind === "not_listed") return { ...listing, created };
  let released = 0;
  for (let last = PAGE; last === PAGE; released += last) {
    last = await releaseWaiting(service, { userId, limit: PAGE });
  }
  const { connections, accounts, behind, accepted } = listing;
  return { kind: "listed", created, connections, accounts, jobs: accepted, left: behind - accepted, released };
}

export async function addUserCommand(tools: Tools, user: UserEntry, waitMs: number): Promise<Report> {
  const added = await addUser(tools, user, waitMs);
  const { userId } = user;
  const stored = added.created ? `${userId} is added.` : `${userId} was known; its secret is replaced.`;
  if (added.kind === "not_listed") {
    const error = `${stored} Its accounts were not read: ${added.reason}. Mend that and repeat the command.`;
    return { exit: 1, document: { userId, created: added.created, error }, text: error };
  }
  const { kind: _, ...facts } = added;
  return { exit: 0, document: { userId, ...facts }, text: `${stored} ${listed(facts)}` };
}

export function listed(facts: { connections: number; accounts: number; jobs: number; left: number; released: number }) {
  const { connections, accounts, jobs, left, released } = facts;
  const later = left > 0 ? ` ${left} more had no slot now: the sweep queues them within 15 min.` : "";
  return (
    `${counted(connections, "connection")}, ${counted(accounts, "account")}; ` +
    `${counted(jobs, "first job")} queued, ${counted(released, "waiting event")} released.${later}`
  );
}
