import type { World } from "@/bench/world/start-world";
import { makeStorm } from "@/sandbox/demo/make-storm";
import type { StormPost } from "@/sandbox/demo/storm";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { microsecondTimeText } from "@/sandbox/snaptrade/time-text";
import { fourDigits } from "@/sandbox/snaptrade/world";
import { SNAPTRADE_KEYS } from "@/sandbox/stack/start-stack";

/** Events for each account, and seconds: those of `npm run demo`, whose 300 accounts get 2,000 events. */
const EVENTS_AN_ACCOUNT = 2_000 / 300;
const LENGTH_MS = 45_000;

/** Long enough for two retries of QStash's own backoff (12 s, 2.5 min, 30 min), and not for three. */
export const FAULT_PATIENCE_MS = 10 * 60_000;

/** The storm of the demo for fewer accounts: the same mixture, density and length. */
export function demoStorm(world: World, accounts: number): StormPost[] {
  const events = Math.round(accounts * EVENTS_AN_ACCOUNT);
  return makeStorm({ ...SNAPTRADE_KEYS, seed: 1, accounts, events, lengthMs: LENGTH_MS, startMs: world.now() });
}

/** One account's holdings event, `atMs` after the start. */
export function holdingsEvent(index: number, atMs: number, startMs: number): Omit<StormPost, "change"> {
  return accountEvent("ACCOUNT_HOLDINGS_UPDATED", index, atMs, startMs);
}

export function accountEvent(
  eventType: "ACCOUNT_HOLDINGS_UPDATED" | "ACCOUNT_TRANSACTIONS_UPDATED",
  index: number,
  atMs: number,
  startMs: number,
): Omit<StormPost, "change"> {
  const owner = fourDigits(Math.floor(index / 2));
  const fields = {
    webhookId: `webhook-${index}-${Math.round(atMs)}`,
    clientId: SNAPTRADE_KEYS.clientId,
    eventTimestamp: microsecondTimeText(startMs + atMs),
    userId: `user-${owner}`,
    eventType,
    brokerageAuthorizationId: `conn-${owner}`,
    accountId: `acct-${fourDigits(index)}`,
  };
  return { atMs, ...makeWebhook(fields, SNAPTRADE_KEYS.consumerKey) };
}

export function numberOf(accountId: string): number {
  return Number(accountId.slice("acct-".length));
}
