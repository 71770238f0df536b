import type { WorkType } from "@/lib/domain";
import type { AccountDetail, Activity, Answer, Failure, Provider } from "@/lib/provider/provider";

/** Rows a page, so that a history of a few transactions takes several pages. */
const PAGE = 2;
const OLD_TRANSACTIONS = 3;
const DAY_MS = 86_400_000;

export type UpstreamFault = "throttled" | "account throttled" | "busy" | "failed" | "unauthorized" | "gone";

/**
 * SnapTrade in memory: for each account and work type a version, which every change makes one larger, and which every
 * part of an answer carries. What is stored so tells which moment was read.
 */
export class Upstream {
  readonly #versions = new Map<string, number>();
  /** When each trade was made: its day stays, also when a history passes midnight. */
  readonly #trades = new Map<string, number[]>();
  #beganAt: number | undefined;
  readonly #faults = new Map<string, UpstreamFault[]>();

  constructor(readonly now: () => number) {}

  version(workType: WorkType, accountId: string): number {
    return this.#versions.get(`${workType}:${accountId}`) ?? 0;
  }
  change(workType: WorkType, accountId: string): number {
    const version = this.version(workType, accountId) + 1;
    this.#versions.set(`${workType}:${accountId}`, version);
    if (workType === "transactions") {
      this.#trades.set(accountId, [...(this.#trades.get(accountId) ?? []), this.now()]);
    }
    return version;
  }
  /** The next call for this account goes wrong. */
  fail(accountId: string, fault: UpstreamFault): void {
    this.#faults.set(accountId, [...(this.#faults.get(accountId) ?? []), fault]);
  }
  mend(): void {
    this.#faults.clear();
  }

  provider(): Provider {
    const answer = <T>(accountId: string, read: () => T): Answer<T> => {
      const fault = this.#faults.get(accountId)?.shift();
      if (fault !== undefined) return FAULTS[fault];
      return { kind: "ok", value: read(), limits: {}, status: 200 };
    };
    const nobody = () => Promise.reject(new Error("Histories list no users"));
    return {
      listConnections: nobody,
      listAccounts: nobody,
      readAccount: async (_, accountId) => answer(accountId, () => detail(accountId)),
      readBalances: async (_, accountId) =>
        answer(accountId, () => [{ currency: "USD", cash: this.#text(accountId), buyingPower: null }]),
      readPositions: async (_, accountId) =>
        answer(accountId, () => ({
          positions: [{ ...POSITION, units: this.#text(accountId) }],
          // Old enough for no clock to call it a time to come.
          asOf: new Date(Date.UTC(2026, 0, 1) + 1000 * this.version("holdings", accountId)).toISOString(),
        })),
      readOrders: async (_, accountId) => answer(accountId, () => [{ ...ORDER, totalQuantity: this.#text(accountId) }]),
      readActivities: async (_, accountId, query) =>
        answer(accountId, () => {
          const found = this.#activities(accountId).filter(
            ({ tradeDate }) =>
              (tradeDate ?? "") <= query.endDate && (tradeDate ?? "") >= (query.startDate ?? "0000-00-00"),
          );
          return {
            activities: found.slice(query.offset, query.offset + PAGE),
            offset: query.offset,
            total: found.length,
          };
        }),
    };
  }

  #text(accountId: string): string {
    return String(this.version("holdings", accountId));
  }
  /** Newest first: one for each version, and a few of long ago. */
  #activities(accountId: string): Activity[] {
    this.#beganAt ??= this.now();
    const beganAt = this.#beganAt;
    const fresh = (this.#trades.get(accountId) ?? []).map((madeAt, i) => activity(i + 1, madeAt));
    const old = Array.from({ length: OLD_TRANSACTIONS }, (_, i) => activity(-1 - i, beganAt - (i + 20) * DAY_MS));
    return [...fresh.reverse(), ...old];
  }
}

function activity(version: number, at: number): Activity {
  return { ...ACTIVITY, activityId: `tx-${version}`, fingerprint: `fp-${version}`, tradeDate: day(at) };
}

function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function failed(failure: Failure, status: number): Failure & { limits: object; status: number } {
  return { ...failure, limits: {}, status };
}

const FAULTS = {
  throttled: failed({ kind: "throttled", scope: "client", retryAfterMs: 20_000 }, 429),
  "account throttled": failed({ kind: "throttled", scope: "account", retryAfterMs: 45_000 }, 429),
  busy: failed({ kind: "busy" }, 503),
  failed: failed({ kind: "failed", status: 500, reason: "the provider's own fault" }, 500),
  unauthorized: failed({ kind: "unauthorized", status: 401, reason: "refused" }, 401),
  gone: failed({ kind: "gone" }, 404),
} as const satisfies Record<UpstreamFault, Failure & { limits: object; status: number }>;

function detail(accountId: string): AccountDetail {
  return {
    accountId,
    connectionId: "connection",
    institutionAccountId: null,
    name: accountId,
    currency: "USD",
    holdingsInitialSyncCompleted: true,
    holdingsUnavailable: false,
    holdingsLastSuccessfulSync: null,
    transactionsInitialSyncCompleted: true,
    transactionsLastSuccessfulSync: null,
  };
}

const POSITION = {
  positionKey: "only",
  kind: "stock",
  symbol: "ABC",
  description: null,
  currency: "USD",
  price: null,
  costBasis: null,
  cashEquivalent: false,
  optionType: null,
  strikePrice: null,
  expirationDate: null,
  multiplier: null,
  raw: "{}",
};
const ORDER = {
  orderKey: "only",
  brokerageOrderId: "only",
  status: null,
  action: null,
  symbol: "ABC",
  orderType: null,
  timeInForce: null,
  openQuantity: null,
  canceledQuantity: null,
  filledQuantity: null,
  executionPrice: null,
  limitPrice: null,
  stopPrice: null,
  timePlaced: null,
  timeUpdated: null,
  timeExecuted: null,
  raw: "{}",
};
const ACTIVITY = {
  type: "BUY",
  symbol: "ABC",
  optionSymbol: null,
  optionType: null,
  description: null,
  currency: "USD",
  price: null,
  units: null,
  amount: null,
  fee: null,
  fxRate: null,
  settlementDate: null,
  institution: null,
  externalReferenceId: null,
  raw: "{}",
};
