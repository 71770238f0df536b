import type { WorkType } from "@/lib/domain";

/** What changes in our state rows, whatever is read afterwards. `none`: the event row alone records it. */
type StateChange =
  | "none"
  | "account_available"
  | "account_removed"
  | "connection_enabled"
  | "connection_disabled"
  | "connection_removed"
  | "user_deleted";

/** The id without which an event cannot be acted on. */
type NeededId = "account" | "connection" | "user" | "none";

export type EventEffect =
  /** Reads the account of the event. */
  | { kind: "account"; needs: "account"; workTypes: readonly WorkType[]; change: "none" | "account_available" }
  /** Reads every account of the connection. */
  | { kind: "connection"; needs: "connection"; workTypes: readonly WorkType[]; change: "connection_enabled" }
  /** Reads nothing. */
  | { kind: "state"; needs: NeededId; change: StateChange };

const readsHoldings = { kind: "account", needs: "account", workTypes: ["holdings"], change: "none" } as const;
const readsTransactions = { kind: "account", needs: "account", workTypes: ["transactions"], change: "none" } as const;
const readsConnection = {
  kind: "connection",
  needs: "connection",
  workTypes: ["holdings", "transactions"],
  change: "connection_enabled",
} as const;
const recordedOnly = { kind: "state", needs: "none", change: "none" } as const;

/**
 * What each event does (SnapTrade docs, webhooks, "Webhook events"; `TRADES_PLACED` is legacy and still sent to some).
 * `CONNECTION_FAILED` and `CONNECTION_ATTEMPTED` carry no connection id: there is no connection yet.
 */
export const EVENT_EFFECTS = {
  ACCOUNT_HOLDINGS_UPDATED: readsHoldings,
  TRADE_DETECTION: readsHoldings,
  TRADE_UPDATE: readsHoldings,
  TRADES_PLACED: readsHoldings,
  ACCOUNT_TRANSACTIONS_INITIAL_UPDATE: readsTransactions,
  ACCOUNT_TRANSACTIONS_UPDATED: readsTransactions,
  NEW_ACCOUNT_AVAILABLE: {
    kind: "account",
    needs: "account",
    workTypes: ["holdings", "transactions"],
    change: "account_available",
  },
  CONNECTION_ADDED: readsConnection,
  CONNECTION_FIXED: readsConnection,
  CONNECTION_BROKEN: { kind: "state", needs: "connection", change: "connection_disabled" },
  CONNECTION_DELETED: { kind: "state", needs: "connection", change: "connection_removed" },
  CONNECTION_UPDATED: recordedOnly,
  CONNECTION_ATTEMPTED: recordedOnly,
  CONNECTION_FAILED: recordedOnly,
  ACCOUNT_REMOVED: { kind: "state", needs: "account", change: "account_removed" },
  USER_REGISTERED: { kind: "state", needs: "user", change: "none" },
  USER_DELETED: { kind: "state", needs: "user", change: "user_deleted" },
} as const satisfies Record<string, EventEffect>;

type DocumentedEventType = keyof typeof EVENT_EFFECTS;

/** The documented types, and the families whose newcomers are recorded without an effect. */
export type EventType = DocumentedEventType | `CONNECTION_${string}` | `USER_${string}`;

export function isEventType(text: string): text is EventType {
  return isDocumented(text) || /^(CONNECTION|USER)_[A-Z0-9_]{1,64}$/.test(text);
}

export function effectOf(event: { eventType: EventType }): EventEffect {
  return isDocumented(event.eventType) ? EVENT_EFFECTS[event.eventType] : recordedOnly;
}

function isDocumented(text: string): text is DocumentedEventType {
  return Object.hasOwn(EVENT_EFFECTS, text);
}
