import { describe, expect, test } from "vitest";
import { readAccount, readAccounts } from "@/lib/provider/read-accounts";
import { readActivities } from "@/lib/provider/read-activities";
import { readBalances } from "@/lib/provider/read-balances";
import { readConnections } from "@/lib/provider/read-connections";
import { readOrders } from "@/lib/provider/read-orders";
import { readPositions } from "@/lib/provider/read-positions";
import type { Read } from "@/lib/provider/wire-values";
import { tryRead } from "@/tests/unit/provider/read-with";
import {
  ACCOUNT,
  ACTIVITY,
  activities,
  BALANCE,
  CONNECTION,
  ORDER,
  positions,
  STOCK,
} from "@/tests/unit/provider/wire-examples";

const READERS: Record<string, (json: unknown) => Read<unknown>> = {
  balances: readBalances,
  positions: readPositions,
  orders: readOrders,
  activities: (json) => readActivities(json, 0),
  accounts: readAccounts,
  account: (json) => readAccount(json, "acct-1"),
  connections: readConnections,
};

const NEVER_AN_ANSWER = [
  "{}",
  "null",
  '""',
  '"ok"',
  "0",
  "true",
  '{"detail":"Something went wrong","status_code":500,"code":"1000"}',
  '{"error":"not supported"}',
  '{"results":null,"data":null}',
  '{"results":{},"data":{},"pagination":{"total":0}}',
  '{"data":[]}',
  '{"results":[]}',
  "[null]",
  "[[]]",
  "[1]",
  "[{}]",
  '{"results":[null],"data_freshness":{"as_of":"2026-11-29"}}',
  '{"results":[{}],"data_freshness":{"as_of":"2026-11-29"}}',
  '{"data":[7],"pagination":{"total":1}}',
  '{"data":[{}],"pagination":{"total":1}}',
  '{"data":[{"detail":"error"}],"pagination":{"total":1}}',
  '{"data":[],"pagination":7}',
  '{"results":[],"data_freshness":7}',
  '[{"id":"a","brokerage_authorization":"b","sync_status":7,"brokerage":7,"disabled":false,"brokerage_order_id":"o","universal_symbol":7}]',
];

describe.each(Object.entries(READERS))(
  "B92, I7: a 200 that is not the documented shape is no answer for %s",
  (_, read) => {
    test.each(NEVER_AN_ANSWER)("%s", (text) => {
      const result = tryRead(read, text);
      expect(result).toEqual({ ok: false, reason: expect.any(String) });
    });
  },
);

describe("the good answers that the bad ones are measured against are read", () => {
  test.each([
    ["balances", `[${BALANCE}]`],
    ["balances", "[]"],
    ["positions", positions(STOCK)],
    ["positions", positions()],
    ["orders", `[${ORDER}]`],
    ["orders", "[]"],
    ["activities", activities([ACTIVITY])],
    ["activities", activities([])],
    ["accounts", `[${ACCOUNT}]`],
    ["accounts", "[]"],
    ["account", ACCOUNT],
    ["connections", `[${CONNECTION}]`],
    ["connections", "[]"],
  ])("%s %#", (part, text) => {
    const read = READERS[part] ?? readBalances;
    expect(tryRead(read, text)).toMatchObject({ ok: true });
  });
});

describe("I7: one bad element fails the whole answer, because a list with a hole deletes a row", () => {
  test.each<[string, string, string]>([
    ["balances", `[${BALANCE},${BALANCE.replace("USD", "CAD").replace("300.71", '"a lot"')}]`, "balances[1].cash"],
    ["balances", `[${BALANCE},${BALANCE}]`, "USD comes twice"],
    ["balances", `[${BALANCE.replace('"USD"', "null")}]`, "no currency"],
    [
      "positions",
      positions(STOCK, STOCK.replace('"24.150"', '"NaN"')),
      'positions.results[1].price: expected a decimal number, got "NaN"',
    ],
    ["positions", positions(STOCK.replace('"24.150"', '{"amount":1}')), "price"],
    ["positions", positions(STOCK.replace('"24.150"', '""')), "price"],
    ["positions", positions(STOCK.replace('"kind":"stock",', "")), "positions.results[0].instrument.kind"],
    ["orders", `[${ORDER.replace('"66a033fa"', "null")}]`, "orders[0].brokerage_order_id"],
    ["orders", `[${ORDER.replace('"status":"EXECUTED"', '"status":7')}]`, "orders[0].status"],
    ["activities", activities([ACTIVITY, ACTIVITY.replace("263.82", '"Infinity"')]), "activities.data[1].amount"],
    ["accounts", `[${ACCOUNT.replace('"conn-1"', "null")}]`, "accounts[0].brokerage_authorization"],
    ["connections", `[${CONNECTION.replace('"disabled":false', '"disabled":null')}]`, "connections[0].disabled"],
  ])("%s: %#", (part, text, reason) => {
    const read = READERS[part] ?? readBalances;
    expect(tryRead(read, text)).toEqual({ ok: false, reason: expect.stringContaining(reason) });
  });
});

test("an empty list of positions counts only with the time at which the brokerage said so", () => {
  for (const freshness of ["null", "{}", '{"as_of":null}', '{"as_of":"soon"}']) {
    expect(tryRead(readPositions, `{"results":[],"data_freshness":${freshness}}`)).toMatchObject({ ok: false });
  }
  expect(tryRead(readPositions, `{"results":[${STOCK}],"data_freshness":null}`)).toMatchObject({ ok: true });
});

describe("a page of activities must say where it ends", () => {
  test.each([
    ["no pagination", `{"data":[${ACTIVITY}]}`],
    ["no total", `{"data":[${ACTIVITY}],"pagination":{"offset":0,"limit":1000}}`],
    ["total is null", `{"data":[${ACTIVITY}],"pagination":{"total":null}}`],
    ["total is text", `{"data":[${ACTIVITY}],"pagination":{"total":"1"}}`],
    ["total is a fraction", `{"data":[${ACTIVITY}],"pagination":{"total":1.5}}`],
    ["total is negative", `{"data":[],"pagination":{"total":-1}}`],
    ["another offset than asked", activities([ACTIVITY], 2000, 1000)],
    ["empty before the end", activities([], 3)],
  ])("%s", (_, text) => {
    expect(tryRead((json) => readActivities(json, 0), text)).toMatchObject({ ok: false });
  });

  test("an empty page at the end is a page", () => {
    const read = tryRead((json) => readActivities(json, 3), activities([], 3, 3));
    expect(read).toEqual({ ok: true, value: { activities: [], offset: 3, total: 3 } });
  });
});

test("an answer about another account than the one asked for is none", () => {
  expect(tryRead((json) => readAccount(json, "acct-2"), ACCOUNT)).toMatchObject({ ok: false });
});
