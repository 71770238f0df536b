import type { Pool } from "undici";
import { post, type SignedEvent } from "@/bench/intake/load";
import type { IntakeStack } from "@/bench/intake/start-stack";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { microsecondTimeText } from "@/sandbox/snaptrade/time-text";
import { SNAPTRADE_KEYS } from "@/sandbox/stack/start-stack";

/** The two baselines and the three events, by the outcome that is answered. */
export const KINDS = ["bare", "bare+1", "duplicate", "coalesced", "accepted"] as const;
export type Kind = (typeof KINDS)[number];

/** Accounts that duplicates and coalesced events are of, as in a storm: each gets many. */
export const BUSY_ACCOUNTS = 50;

const WEBHOOK = "/api/snaptrade/webhook";
export const PATHS: Record<Kind, string> = {
  bare: "/api/bench/bare",
  "bare+1": "/api/bench/bare-plus-one",
  duplicate: WEBHOOK,
  coalesced: WEBHOOK,
  accepted: WEBHOOK,
};

/** Events that leave a row of their own; that of a coalesced one is written after its answer. */
export function countStored(outcomes: readonly string[]): number {
  return outcomes.filter((outcome) => outcome === "coalesced" || outcome === "accepted").length;
}

/** Redis may be late once on a machine where others work; more, and something else was measured. */
const MOST_STRAYS = 0.01;

/** @throws when the events were not answered as this kind is */
export function assertOutcomes(outcomes: readonly string[], kinds: readonly Kind[]): void {
  const strays = outcomes.filter((outcome) => !kinds.some((kind) => kind === outcome));
  if (strays.length <= outcomes.length * MOST_STRAYS) return;
  const found = [...new Set(strays)].join(", ");
  throw new Error(
    `Not measured: ${strays.length} of ${outcomes.length} events (${kinds.join(", ")}) were answered ${found}`,
  );
}

/** A holdings event as SnapTrade sends it, with an id that never came before. */
export function newEvent(account: number): SignedEvent {
  const good = { success: true, error: null };
  const fields = {
    webhookId: crypto.randomUUID(),
    clientId: SNAPTRADE_KEYS.clientId,
    eventTimestamp: microsecondTimeText(Date.now()),
    userId: `user-${account}`,
    webhookSecret: "sandbox-webhook-secret",
    eventType: "ACCOUNT_HOLDINGS_UPDATED",
    brokerageAuthorizationId: `conn-${account}`,
    accountId: `acct-${account}`,
    details: { total_value: good, positions: good, balances: good, orders: good },
  };
  return makeWebhook(fields, SNAPTRADE_KEYS.consumerKey);
}

/**
 * So many events of a kind, signed, over an intake that has seen nothing but what makes them of this kind: a duplicate's
 * first copy was accepted, a coalesced event's account has a queued job, an accepted event's account has none.
 */
export async function prepare(kind: Kind, count: number, stack: IntakeStack, pool: Pool): Promise<SignedEvent[]> {
  await stack.forget();
  if (kind === "accepted" && count > stack.accounts) throw new Error(`${count} accepted events need as many accounts`);
  const events = (of: (i: number) => SignedEvent) => Array.from({ length: count }, (_, i) => of(i));
  if (kind === "bare" || kind === "bare+1") return events((i) => newEvent(i % BUSY_ACCOUNTS));
  if (kind === "accepted") return events(newEvent);
  const first = await acceptBusyAccounts(pool);
  return events((i) => (kind === "duplicate" ? pick(first, i) : newEvent(i % BUSY_ACCOUNTS)));
}

/** One accepted event for each of the busy accounts. */
export async function acceptBusyAccounts(pool: Pool): Promise<SignedEvent[]> {
  const first = Array.from({ length: BUSY_ACCOUNTS }, (_, i) => newEvent(i));
  for (const event of first) {
    const outcome = await post(pool, WEBHOOK, event);
    if (outcome !== "accepted") throw new Error(`The first event of an account was answered ${outcome}`);
  }
  return first;
}

export function pick<T>(from: readonly T[], i: number): T {
  const item = from[i % from.length];
  if (item === undefined) throw new Error("Nothing to pick from");
  return item;
}
