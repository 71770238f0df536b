import { parseProviderJson } from "@/lib/provider/json-text";
import type { AccountDetail, Activity, Balance, Order, Positions } from "@/lib/provider/provider";
import { readAccount } from "@/lib/provider/read-accounts";
import { readActivities } from "@/lib/provider/read-activities";
import { readBalances } from "@/lib/provider/read-balances";
import { readOrders } from "@/lib/provider/read-orders";
import { readPositions } from "@/lib/provider/read-positions";
import type { Read } from "@/lib/provider/wire-values";
import { readOrders as answerOrders } from "@/sandbox/snaptrade/account-reads";
import { writeWire } from "@/sandbox/snaptrade/wire";
import { accountWire, positionsWire } from "@/sandbox/snaptrade/wire-shapes";
import type { SimAccount, SimConnection } from "@/sandbox/snaptrade/world";

export type AccountRows = {
  detail: AccountDetail;
  holdings: { balances: Balance[]; positions: Positions; orders: Order[] };
  /** The whole history, newest first. */
  activities: Activity[];
};

/**
 * What the service would store of an upstream account: the simulator's answers, read by the service's own readers, so
 * that a later run of unchanged data writes nothing. Without a call, which would spend the provider's limit.
 */
export function accountRows(account: SimAccount, connection: SimConnection, nowMs: number): AccountRows {
  const orders = answerOrders(account, new URLSearchParams({ state: "all" }), nowMs).body;
  const activities = {
    data: account.activities,
    pagination: { offset: 0, limit: account.activities.length, total: account.activities.length },
  };
  return {
    detail: wanted(readAccount(parsed(writeWire(accountWire(account, connection))), account.accountId)),
    holdings: {
      balances: wanted(readBalances(parsed(writeWire(account.balances)))),
      positions: wanted(readPositions(parsed(writeWire(positionsWire(account))))),
      orders: wanted(readOrders(parsed(orders))),
    },
    activities: wanted(readActivities(parsed(writeWire(activities)), 0)).activities,
  };
}

function parsed(text: string): unknown {
  const read = parseProviderJson(text);
  if (!read.ok) throw new Error(`The simulator's data is not JSON: ${read.reason}`);
  return read.json;
}

function wanted<T>(read: Read<T>): T {
  if (!read.ok) throw new Error(`The simulator's data is not of the documented shape: ${read.reason}`);
  return read.value;
}
