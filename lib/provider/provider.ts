/**
 * The port to SnapTrade: every answer is a value of a closed union, and every answer tells what it said about limits.
 * No retry, no sleep, no throw for anything that a provider can do; what an answer means is told in one place.
 */

/** Numbers stay the text that the wire carried: what the wire said is what is stored. `null` where it said nothing. */
export type NumberText = string | null;

/** What one answer told about the rate limits (SnapTrade docs, rate limiting). Absent headers are absent here. */
export type LimitReport = {
  limit?: number;
  remaining?: number;
  resetSeconds?: number;
};

export type Failure =
  /**
   * 429. `client`: nobody may call; `account`: this account only; `connection`: its manual refresh only.
   * `warning` names a header that was there and could not be read; the wait comes from the next source then.
   */
  | { kind: "throttled"; scope: "client" | "account" | "connection"; retryAfterMs: number; warning?: string }
  /** 503 code 3002: the brokerage connection is busy syncing; safe to retry. */
  | { kind: "busy" }
  /** 404 from SnapTrade itself (a body that is no JSON object is `failed`): the account is not there any more. */
  | { kind: "gone" }
  /** 402, 410: no retry can help. */
  | { kind: "refused"; status: number; reason: string }
  /** 400, 401, 403: our credentials or request; an hour or more apart, one alert for a wave. */
  | { kind: "unauthorized"; status: number; reason: string }
  /** 501: this brokerage has no such part. */
  | { kind: "unsupported" }
  /** Other statuses, time limit, cut or malformed body: a failed attempt. `status` 0: no answer came. */
  | { kind: "failed"; status: number; reason: string }
  /** The run's own deadline fired before or while calling. */
  | { kind: "aborted" };

export type Answer<T> = ({ kind: "ok"; value: T } | Failure) & { limits: LimitReport; status: number };

/** Whose data is read. `userSecret` is the decrypted secret; it goes to SnapTrade and nowhere else (I10). */
export type ProviderUser = { userId: string; userSecret: string };

export type AccountDetail = {
  accountId: string;
  connectionId: string;
  institutionAccountId: string | null;
  name: string | null;
  currency: string | null;
  holdingsInitialSyncCompleted: boolean | null;
  holdingsUnavailable: boolean | null;
  holdingsLastSuccessfulSync: string | null;
  transactionsInitialSyncCompleted: boolean | null;
  transactionsLastSuccessfulSync: string | null;
};

export type Connection = { connectionId: string; brokerage: string | null; disabled: boolean };

export type Balance = { currency: string; cash: NumberText; buyingPower: NumberText };

/** `positionKey` identifies a position within its account; `raw` is the wire element with numbers as they came. */
export type Position = {
  positionKey: string;
  kind: string;
  symbol: string | null;
  description: string | null;
  currency: string | null;
  units: NumberText;
  price: NumberText;
  costBasis: NumberText;
  cashEquivalent: boolean;
  optionType: string | null;
  strikePrice: NumberText;
  expirationDate: string | null;
  multiplier: NumberText;
  raw: string;
};
export type Positions = { positions: Position[]; asOf: string | null };

/** `orderKey` is the order's id and the leg's occurrence: a multi-leg order repeats its id. */
export type Order = {
  orderKey: string;
  brokerageOrderId: string;
  status: string | null;
  action: string | null;
  symbol: string | null;
  orderType: string | null;
  timeInForce: string | null;
  totalQuantity: NumberText;
  openQuantity: NumberText;
  canceledQuantity: NumberText;
  filledQuantity: NumberText;
  executionPrice: NumberText;
  limitPrice: NumberText;
  stopPrice: NumberText;
  timePlaced: string | null;
  timeUpdated: string | null;
  timeExecuted: string | null;
  raw: string;
};

/** `fingerprint` is SHA-256 over the attributes that make a transaction, without its id: re-issued ids keep it. */
export type Activity = {
  activityId: string | null;
  fingerprint: string;
  type: string | null;
  symbol: string | null;
  optionSymbol: string | null;
  optionType: string | null;
  description: string | null;
  currency: string | null;
  price: NumberText;
  units: NumberText;
  amount: NumberText;
  fee: NumberText;
  fxRate: NumberText;
  tradeDate: string | null;
  settlementDate: string | null;
  institution: string | null;
  externalReferenceId: string | null;
  raw: string;
};
export type ActivityPage = { activities: Activity[]; offset: number; total: number };

/** Dates are `YYYY-MM-DD`, inclusive on both sides. */
export type ActivityQuery = { startDate?: string; endDate: string; offset: number; limit: number };

export interface Provider {
  listConnections(user: ProviderUser, signal: AbortSignal): Promise<Answer<Connection[]>>;
  listAccounts(user: ProviderUser, signal: AbortSignal): Promise<Answer<AccountDetail[]>>;
  readAccount(user: ProviderUser, accountId: string, signal: AbortSignal): Promise<Answer<AccountDetail>>;
  readBalances(user: ProviderUser, accountId: string, signal: AbortSignal): Promise<Answer<Balance[]>>;
  readPositions(user: ProviderUser, accountId: string, signal: AbortSignal): Promise<Answer<Positions>>;
  readOrders(user: ProviderUser, accountId: string, signal: AbortSignal): Promise<Answer<Order[]>>;
  readActivities(
    user: ProviderUser,
    accountId: string,
    query: ActivityQuery,
    signal: AbortSignal,
  ): Promise<Answer<ActivityPage>>;
}
