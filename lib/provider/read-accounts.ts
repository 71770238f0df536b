import { z } from "zod";
import type { AccountDetail } from "@/lib/provider/provider";
import {
  type Read,
  readList,
  readShape,
  wireCurrency,
  wireFlag,
  wireKeyId,
  wireObject,
  wireText,
  wireTime,
} from "@/lib/provider/wire-values";

const account = wireObject({
  id: wireKeyId,
  brokerage_authorization: wireKeyId,
  institution_account_id: wireText,
  name: wireText,
  balance: wireObject({ total: wireObject({ currency: wireCurrency }).nullish() }).nullish(),
  sync_status: wireObject({
    holdings: wireObject({
      initial_sync_completed: wireFlag,
      holdings_unavailable: wireFlag,
      last_successful_sync: wireTime,
    }).nullish(),
    transactions: wireObject({ initial_sync_completed: wireFlag, last_successful_sync: wireTime }).nullish(),
  }).nullish(),
}).transform(({ sync_status, ...wire }): AccountDetail => {
  const { holdings, transactions } = sync_status ?? {};
  return {
    accountId: wire.id,
    connectionId: wire.brokerage_authorization,
    institutionAccountId: wire.institution_account_id,
    name: wire.name,
    currency: wire.balance?.total?.currency ?? null,
    holdingsInitialSyncCompleted: holdings?.initial_sync_completed ?? null,
    holdingsUnavailable: holdings?.holdings_unavailable ?? null,
    holdingsLastSuccessfulSync: holdings?.last_successful_sync ?? null,
    transactionsInitialSyncCompleted: transactions?.initial_sync_completed ?? null,
    transactionsLastSuccessfulSync: transactions?.last_successful_sync ?? null,
  };
});

/** `GET /accounts`: always the cached daily data, on any plan (SnapTrade API reference, listUserAccounts). */
export function readAccounts(json: unknown): Read<AccountDetail[]> {
  const list = readShape("accounts", z.array(z.unknown()), json);
  return list.ok ? readList("accounts", list.value, account, (detail) => detail) : list;
}

/** `GET /accounts/{id}`. Another account than the one asked for is no answer. */
export function readAccount(json: unknown, accountId: string): Read<AccountDetail> {
  const detail = readShape("account", account, json);
  if (detail.ok && detail.value.accountId !== accountId) {
    return { ok: false, reason: `account.id: asked for ${accountId}, got ${detail.value.accountId}` };
  }
  return detail;
}
