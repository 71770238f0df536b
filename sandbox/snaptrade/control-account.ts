/** What the control API shows and changes of one account's cached state. */
import { latestFirst } from "@/sandbox/snaptrade/activity-page";
import type { AccountBody } from "@/sandbox/snaptrade/control-bodies";
import { isoTimeText } from "@/sandbox/snaptrade/time-text";
import { syncStatusWire } from "@/sandbox/snaptrade/wire-shapes";
import { type SimAccount, syncedHoldings, syncedTransactions, type World } from "@/sandbox/snaptrade/world";

export function showAccount(world: World, account: SimAccount) {
  return {
    accountId: account.accountId,
    connectionId: account.connectionId,
    userId: account.userId,
    disabled: (world.connections.get(account.connectionId)?.disabledDate ?? null) !== null,
    sync_status: syncStatusWire(account),
    data_freshness: { as_of: account.asOf },
    versions: account.versions,
    balances: account.balances,
    positions: account.positions,
    orders: account.orders,
    activities: account.activities,
  };
}

/**
 * The account after a PUT. Each given list replaces the old one whole. As after a real sync, new holdings move `as_of`
 * and `sync_status.holdings` to now, new activities move `sync_status.transactions`; what the body says about them is
 * laid over that.
 */
export function changedAccount(account: SimAccount, body: AccountBody, nowMs: number): SimAccount {
  const { positions, balances, orders, activities } = body;
  const newHoldings = positions !== undefined || balances !== undefined || orders !== undefined;
  const firstDate = account.transactionsStatus.first_transaction_date;
  return {
    ...account,
    positions: positions ?? account.positions,
    balances: balances ?? account.balances,
    orders: orders ?? account.orders,
    activities: activities === undefined ? account.activities : latestFirst(activities),
    asOf: body.data_freshness?.as_of ?? (newHoldings ? isoTimeText(nowMs) : account.asOf),
    holdingsStatus: {
      ...account.holdingsStatus,
      ...(newHoldings ? syncedHoldings(nowMs) : {}),
      ...body.sync_status?.holdings,
    },
    transactionsStatus: {
      ...account.transactionsStatus,
      ...(activities === undefined ? {} : syncedTransactions(nowMs, typeof firstDate === "string" ? firstDate : null)),
      ...body.sync_status?.transactions,
    },
  };
}

/** `disabled` belongs to the connection: the other accounts under it share it. */
export function setDisabled(world: World, connectionId: string, disabled: boolean, nowMs: number): void {
  const connection = world.connections.get(connectionId);
  if (connection === undefined || (connection.disabledDate !== null) === disabled) return;
  world.connections.set(connectionId, { ...connection, disabledDate: disabled ? isoTimeText(nowMs) : null });
}
