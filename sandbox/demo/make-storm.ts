import { type StormPost, withChanges } from "@/sandbox/demo/storm";
import { type Random, seededRandom } from "@/sandbox/snaptrade/seeded-random";
import { signWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { microsecondTimeText } from "@/sandbox/snaptrade/time-text";
import { fourDigits } from "@/sandbox/snaptrade/world";

export type StormOptions = {
  seed: number;
  accounts: number;
  /** Different events; redeliveries come on top, three for four events. */
  events: number;
  lengthMs: number;
  clientId: string;
  consumerKey: string;
  /** When the storm begins, for `eventTimestamp`. */
  startMs: number;
};

/** The mixture of the recorded storm, of a hundred. */
const TYPES: readonly [string, number][] = [
  ["ACCOUNT_HOLDINGS_UPDATED", 69],
  ["ACCOUNT_TRANSACTIONS_UPDATED", 20],
  ["ACCOUNT_TRANSACTIONS_INITIAL_UPDATE", 6],
  ["CONNECTION_UPDATED", 5],
];
/** How often an event comes, of a hundred: once, twice, three times, four times. */
const COPIES: readonly [number, number][] = [
  [1, 43],
  [2, 42],
  [3, 13],
  [4, 2],
];
/** One account in eight is a busy one; together they get more than half of all events. */
const BUSY = { oneIn: 8, ofHundred: 55 };
/** A redelivery comes at most this much later. */
const LATEST_COPY_MS = 2_000;

/**
 * A storm like the incident's: thousands of events for a few hundred accounts in under a minute, most at the beginning
 * and for few of the accounts, many delivered again byte for byte, with both spellings of the id and both wire forms that
 * SnapTrade uses. The same options give the same storm.
 */
export function makeStorm(options: StormOptions): StormPost[] {
  const random = seededRandom(options.seed, "storm");
  const posts = Array.from({ length: options.events }, () => {
    // The power brings more of them early: the first seconds carry more than twice the mean.
    const share = random.int(1_000_000) / 1_000_000;
    const atMs = Math.floor(share ** 1.5 * (options.lengthMs - LATEST_COPY_MS));
    const body = makeBody(random, options, atMs);
    const signature = signWebhook(body, options.consumerKey);
    const copies = weighted(random, COPIES);
    return Array.from({ length: copies }, (_, copy) => ({
      atMs: copy === 0 ? atMs : atMs + 1 + random.int(LATEST_COPY_MS),
      body,
      signature,
    }));
  }).flat();
  return withChanges(posts.sort((a, b) => a.atMs - b.atMs));
}

function makeBody(random: Random, { accounts, clientId, startMs }: StormOptions, atMs: number): string {
  const isBusy = random.int(100) < BUSY.ofHundred;
  const index = isBusy ? random.int(Math.ceil(accounts / BUSY.oneIn)) * BUSY.oneIn : random.int(accounts);
  const owner = fourDigits(Math.floor(index / 2));
  const eventType = weighted(random, TYPES);
  const good = { success: true, error: null };
  const event = {
    [random.int(10) === 0 ? "webookId" : "webhookId"]: random.uuid(),
    clientId,
    eventTimestamp: microsecondTimeText(startMs + atMs),
    userId: `user-${owner}`,
    eventType,
    brokerageAuthorizationId: `conn-${owner}`,
    ...(eventType === "CONNECTION_UPDATED" ? {} : { accountId: `acct-${fourDigits(index)}` }),
    ...(eventType === "ACCOUNT_HOLDINGS_UPDATED"
      ? { details: { total_value: good, positions: good, balances: good, orders: good } }
      : {}),
  };
  return random.int(2) === 0 ? JSON.stringify(event) : spacedJson(event);
}

/** Python's usual form: a space after each comma and colon. */
function spacedJson(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`);
  return `{${members.join(", ")}}`;
}

function weighted<T>(random: Random, choices: readonly (readonly [T, number])[]): T {
  let left = random.int(choices.reduce((sum, [, weight]) => sum + weight, 0));
  for (const [choice, weight] of choices) {
    left -= weight;
    if (left < 0) return choice;
  }
  throw new Error("Weights must be above 0");
}
