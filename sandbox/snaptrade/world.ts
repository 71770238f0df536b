import { createHash } from "node:crypto";
import type { WorkType } from "@/lib/domain";
import { latestFirst } from "@/sandbox/snaptrade/activity-page";
import { seedActivities } from "@/sandbox/snaptrade/seed-activities";
import { seedBalances, seedPositions } from "@/sandbox/snaptrade/seed-holdings";
import { seedOrders } from "@/sandbox/snaptrade/seed-orders";
import { seededRandom } from "@/sandbox/snaptrade/seeded-random";
import { isoTimeText, spacedTimeText, yesterdayText } from "@/sandbox/snaptrade/time-text";
import type { WireObject } from "@/sandbox/snaptrade/wire";

/** What SnapTrade has cached of one account. A value: a change makes a new one, so a held one is a snapshot. */
export type SimAccount = {
  readonly accountId: string;
  readonly connectionId: string;
  readonly userId: string;
  readonly name: string;
  readonly number: string;
  readonly institutionAccountId: string;
  readonly currency: string;
  readonly createdDate: string;
  readonly balances: readonly WireObject[];
  readonly positions: readonly WireObject[];
  readonly orders: readonly WireObject[];
  /** Newest trade date first. */
  readonly activities: readonly WireObject[];
  /** `data_freshness.as_of` of `positions/all`. */
  readonly asOf: string;
  readonly holdingsStatus: WireObject;
  readonly transactionsStatus: WireObject;
  /** Upstream versions, 1 at the start; each bump adds one. */
  readonly versions: Readonly<Record<WorkType, number>>;
};

export type SimConnection = {
  readonly connectionId: string;
  readonly userId: string;
  readonly brokerage: { readonly id: string; readonly slug: string; readonly name: string };
  readonly createdDate: string;
  /** Real-time connections may not be refreshed by hand (SnapTrade docs, billing). */
  readonly realtime: boolean;
  readonly disabledDate: string | null;
};

export type SimUser = { readonly userId: string; readonly userSecret: string };

export type World = {
  users: Map<string, SimUser>;
  connections: Map<string, SimConnection>;
  accounts: Map<string, SimAccount>;
};

const ACCOUNTS_PER_CONNECTION = 2;
const DAY_MS = 86_400_000;

const BROKERAGES = [
  { id: "brokerage-1", slug: "ALPACA", name: "Alpaca" },
  { id: "brokerage-2", slug: "QUESTRADE", name: "Questrade" },
  { id: "brokerage-3", slug: "KRAKEN", name: "Kraken" },
] as const;

/**
 * `acct-0000`..., two a connection and a user. The same seed, number and start time give the same world. All data is
 * fresh at `startMs`. `activities` false: the accounts begin without transactions.
 */
export function seedWorld(seed: number, accounts: number, startMs: number, activities = true): World {
  const world: World = { users: new Map(), connections: new Map(), accounts: new Map() };
  for (let index = 0; index < accounts; index += 1) {
    const owner = Math.floor(index / ACCOUNTS_PER_CONNECTION);
    const userId = `user-${fourDigits(owner)}`;
    const connectionId = `conn-${fourDigits(owner)}`;
    if (!world.connections.has(connectionId)) {
      world.users.set(userId, { userId, userSecret: userSecretOf(seed, userId) });
      world.connections.set(connectionId, seedConnection(connectionId, userId, owner, startMs));
    }
    const accountId = `acct-${fourDigits(index)}`;
    world.accounts.set(accountId, seedAccount({ seed, accountId, connectionId, userId, index, startMs, activities }));
  }
  return world;
}

/** An account that appears upstream after the start, with nothing in it yet. */
export function emptyAccount(accountId: string, connection: SimConnection, nowMs: number): SimAccount {
  return {
    ...describeAccount(accountId, connection.connectionId, connection.userId, nowMs),
    currency: "USD",
    balances: [],
    positions: [],
    orders: [],
    activities: [],
    transactionsStatus: syncedTransactions(nowMs, null),
  };
}

type Place = {
  seed: number;
  accountId: string;
  connectionId: string;
  userId: string;
  index: number;
  startMs: number;
  activities: boolean;
};

function seedAccount({ seed, accountId, connectionId, userId, index, startMs, ...place }: Place): SimAccount {
  const random = seededRandom(seed, accountId);
  const fetchedMs = startMs - random.int(3_600_000);
  const activities = place.activities ? latestFirst(seedActivities(random, index, startMs)) : [];
  return {
    ...describeAccount(accountId, connectionId, userId, fetchedMs),
    currency: random.pick(["USD", "CAD"]),
    balances: seedBalances(random, index),
    positions: seedPositions(random, index),
    orders: seedOrders(random, startMs),
    activities,
    transactionsStatus: syncedTransactions(startMs, yesterdayText(startMs - activities.length * 4 * DAY_MS)),
  };
}

function describeAccount(accountId: string, connectionId: string, userId: string, fetchedMs: number) {
  const digits = accountId.replace(/\D/g, "").slice(-4);
  return {
    accountId,
    connectionId,
    userId,
    name: `Individual ${digits}`,
    number: `****${digits}`,
    institutionAccountId: `institution-${accountId}`,
    createdDate: isoTimeText(fetchedMs - 90 * DAY_MS),
    asOf: isoTimeText(fetchedMs),
    holdingsStatus: syncedHoldings(fetchedMs),
    versions: { holdings: 1, transactions: 1 },
  };
}

/** `sync_status.holdings` of a sync that ended now. */
export function syncedHoldings(nowMs: number): WireObject {
  return { initial_sync_completed: true, last_successful_sync: spacedTimeText(nowMs), holdings_unavailable: false };
}

/** `sync_status.transactions` of a sync that ended now. */
export function syncedTransactions(nowMs: number, firstDate: string | null): WireObject {
  return {
    initial_sync_completed: true,
    last_successful_sync: yesterdayText(nowMs),
    first_transaction_date: firstDate,
  };
}

function seedConnection(connectionId: string, userId: string, owner: number, startMs: number): SimConnection {
  return {
    connectionId,
    userId,
    brokerage: BROKERAGES[owner % BROKERAGES.length] ?? BROKERAGES[0],
    createdDate: isoTimeText(startMs - 90 * DAY_MS),
    realtime: owner % 10 === 9,
    disabledDate: null,
  };
}

function userSecretOf(seed: number, userId: string): string {
  return `secret-${createHash("sha256").update(`${seed}:${userId}`).digest("hex").slice(0, 24)}`;
}

export function fourDigits(n: number): string {
  return String(n).padStart(4, "0");
}
