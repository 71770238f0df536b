import { expect, test } from "vitest";
import { readAccount, readAccounts } from "@/lib/provider/read-accounts";
import { readConnections } from "@/lib/provider/read-connections";
import { edit, readWith } from "@/tests/unit/provider/read-with";
import { ACCOUNT, CONNECTION } from "@/tests/unit/provider/wire-examples";

const DETAIL = {
  accountId: "acct-1",
  connectionId: "conn-1",
  institutionAccountId: "inst-1",
  name: "Margin",
  currency: "USD",
  holdingsInitialSyncCompleted: true,
  holdingsUnavailable: false,
  holdingsLastSuccessfulSync: "2024-06-28T18:42:46.561408Z",
  transactionsInitialSyncCompleted: true,
  transactionsLastSuccessfulSync: "2022-01-24",
};

test("an account says when its parts were last synced, a time with a space included", () => {
  expect(readWith((json) => readAccount(json, "acct-1"), ACCOUNT)).toEqual(DETAIL);
  expect(readWith(readAccounts, `[${ACCOUNT},${edit(ACCOUNT, "acct-1", "acct-2")}]`)).toEqual([
    DETAIL,
    { ...DETAIL, accountId: "acct-2" },
  ]);
});

test("I7: what an account does not say about its sync is unknown, not false", () => {
  const bare = '{"id":"acct-1","brokerage_authorization":"conn-1"}';
  const empty =
    '{"id":"acct-1","brokerage_authorization":"conn-1","sync_status":{"holdings":{"holdings_unavailable":null,"last_successful_sync":"never"}},"balance":{"total":null}}';
  const unknown = Object.fromEntries(Object.keys(DETAIL).map((key) => [key, null]));
  for (const text of [bare, empty]) {
    expect(readWith((json) => readAccount(json, "acct-1"), text)).toEqual({
      ...unknown,
      accountId: "acct-1",
      connectionId: "conn-1",
    });
  }
});

test("a connection is disabled or not, whatever form its freshness takes", () => {
  const broken = edit(CONNECTION, '"disabled":false', '"disabled":true');
  const unnamed = '{"id":"conn-2","brokerage":null,"disabled":false}';
  expect(readWith(readConnections, `[${CONNECTION},${broken},${unnamed}]`)).toEqual([
    { connectionId: "conn-1", brokerage: "QUESTRADE", disabled: false },
    { connectionId: "conn-1", brokerage: "QUESTRADE", disabled: true },
    { connectionId: "conn-2", brokerage: null, disabled: false },
  ]);
});
