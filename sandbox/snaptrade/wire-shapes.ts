/** Our records in SnapTrade's wire shape (SDK 11.0.3 types Account, BrokerageAuthorization, AllAccountPositionsResponse). */
import { num, type WireObject } from "@/sandbox/snaptrade/wire";
import type { SimAccount, SimConnection } from "@/sandbox/snaptrade/world";

export function syncStatusWire(account: SimAccount): WireObject {
  return { transactions: account.transactionsStatus, holdings: account.holdingsStatus };
}

export function accountWire(account: SimAccount, connection: SimConnection): WireObject {
  return {
    id: account.accountId,
    brokerage_authorization: account.connectionId,
    name: account.name,
    number: account.number,
    institution_account_id: account.institutionAccountId,
    institution_name: connection.brokerage.name,
    created_date: account.createdDate,
    funding_date: null,
    opening_date: null,
    sync_status: syncStatusWire(account),
    balance: { total: { amount: num(`1${account.positions.length}5363.230`), currency: account.currency } },
    status: "open",
    raw_type: "Margin",
    account_category: "INVESTMENT",
    meta: {},
    portfolio_group: null,
    cash_restrictions: [],
    is_paper: false,
  };
}

export function positionsWire(account: SimAccount): WireObject {
  return { results: account.positions, data_freshness: { as_of: account.asOf } };
}

export function connectionWire(connection: SimConnection): WireObject {
  return {
    id: connection.connectionId,
    created_date: connection.createdDate,
    brokerage: {
      id: connection.brokerage.id,
      slug: connection.brokerage.slug,
      name: connection.brokerage.name,
      display_name: connection.brokerage.name,
      description: `${connection.brokerage.name} (simulated)`,
      enabled: true,
      maintenance_mode: false,
      is_degraded: false,
      allows_trading: false,
      is_real_time_connection: connection.realtime,
    },
    name: `Connection ${connection.connectionId}`,
    type: "read",
    disabled: connection.disabledDate !== null,
    disabled_date: connection.disabledDate,
    meta: {},
    updated_date: connection.createdDate,
    is_eligible_for_payout: false,
    data_freshness_mode: connection.realtime ? "realtime" : "delayed",
  };
}
