import type { WorkType } from "@/lib/domain";
import { latestFirst } from "@/sandbox/snaptrade/activity-page";
import { currencyWire, instrumentWire, OPTION_UNDERLYING } from "@/sandbox/snaptrade/seed-instruments";
import { isoTimeText, yesterdayText } from "@/sandbox/snaptrade/time-text";
import { num, type WireObject } from "@/sandbox/snaptrade/wire";
import { type SimAccount, syncedHoldings, syncedTransactions } from "@/sandbox/snaptrade/world";

/**
 * The account with a new upstream version that shows in every part of the work type: a store that holds the data of
 * version n differs from the account at version n + 1.
 */
export function bumpAccount(account: SimAccount, workType: WorkType, nowMs: number): SimAccount {
  const version = account.versions[workType] + 1;
  const versions = { ...account.versions, [workType]: version };
  switch (workType) {
    case "holdings":
      return {
        ...account,
        positions: withVersion(account.positions, { units: `${version}.000000000000000001` }, versionedPosition()),
        balances: withVersion(account.balances, { cash: num(`${version}.50`) }, { currency: currencyWire("USD") }),
        orders: account.orders.map((order, i) => (i === 0 ? versionedOrder(order, version, nowMs) : order)),
        asOf: isoTimeText(nowMs),
        holdingsStatus: syncedHoldings(nowMs),
        versions,
      };
    case "transactions":
      return {
        ...account,
        activities: latestFirst([versionedActivity(account.accountId, version, nowMs), ...account.activities]),
        transactionsStatus: {
          ...syncedTransactions(nowMs, null),
          first_transaction_date: account.transactionsStatus.first_transaction_date ?? yesterdayText(nowMs),
        },
        versions,
      };
  }
}

/** The first element carries the version; an account that holds nothing gets one element. */
function withVersion(list: readonly WireObject[], change: WireObject, ifEmpty: WireObject): WireObject[] {
  const [first = ifEmpty, ...rest] = list;
  return [{ ...first, ...change }, ...rest];
}

function versionedPosition(): WireObject {
  return { instrument: instrumentWire(OPTION_UNDERLYING), price: "1.00", cost_basis: null, currency: "USD" };
}

function versionedOrder(order: WireObject, version: number, nowMs: number): WireObject {
  return { ...order, execution_price: `${version}.50`, time_updated: isoTimeText(nowMs) };
}

/** Dated yesterday, because SnapTrade has no intraday transactions. */
function versionedActivity(accountId: string, version: number, nowMs: number): WireObject {
  const day = yesterdayText(nowMs);
  return {
    id: `activity-${accountId}-${version}`,
    symbol: null,
    option_symbol: null,
    price: num("0.0"),
    units: num("0.0"),
    amount: num(`${version}.50`),
    currency: currencyWire("USD"),
    type: "CONTRIBUTION",
    option_type: "",
    description: `Version ${version}`,
    trade_date: `${day}T00:00:00.000Z`,
    settlement_date: `${day}T00:00:00.000Z`,
    fee: num("0.0"),
    fx_rate: null,
    institution: "Simulated Brokerage",
    external_reference_id: null,
  };
}
