import { describe, expect, test } from "vitest";
import { readBalances } from "@/lib/provider/read-balances";
import { readOrders } from "@/lib/provider/read-orders";
import { readPositions } from "@/lib/provider/read-positions";
import { edit, readWith } from "@/tests/unit/provider/read-with";
import { BALANCE, OPTION, ORDER, positions, STOCK } from "@/tests/unit/provider/wire-examples";

const keysOf = (...elements: string[]) =>
  readWith(readPositions, positions(...elements)).positions.map(({ positionKey }) => positionKey);

describe("B81: numbers are stored as they were sent", () => {
  test("balances come as JSON numbers", () => {
    expect(readWith(readBalances, `[${BALANCE}]`)).toEqual([
      { currency: "USD", cash: "300.71", buyingPower: "1410.710" },
    ]);
  });

  test.each(["0.123456789012345678", "123456789.123456789", "1e-8", "33.333333333", "-2", "100.0", "12.50", "0E-10"])(
    "%s units, as a string or as a number",
    (units) => {
      const text = edit(STOCK, "0.123456789012345678", units);
      const asNumber = edit(text, `"${units}"`, units);
      const [first, second] = readWith(readPositions, positions(text, asNumber)).positions;
      expect([first?.units, second?.units]).toEqual([units, units]);
      expect([first?.raw, second?.raw]).toEqual([text.replaceAll("\n  ", ""), asNumber.replaceAll("\n  ", "")]);
    },
  );

  test("what the wire did not say is null", () => {
    const bare = '[{"currency":"EUR"},{"currency":{"code":"USD"},"cash":null,"buying_power":null}]';
    expect(readWith(readBalances, bare)).toEqual([
      { currency: "EUR", cash: null, buyingPower: null },
      { currency: "USD", cash: null, buyingPower: null },
    ]);
  });
});

test("a position carries what the wire says, unknown kinds and fields included", () => {
  const other = '{"instrument":{"kind":"tokenised-house","new":[1.10]},"units":"1"}';
  const { positions: read, asOf } = readWith(readPositions, positions(OPTION, other));
  expect(asOf).toBe("2026-11-29T11:00:00Z");
  expect(read).toEqual([
    {
      positionKey: '["option","i-opt","AAPL  261218C00240000","CALL","24e1","2026-12-18","USD",0]',
      kind: "option",
      symbol: "AAPL  261218C00240000",
      description: null,
      currency: "USD",
      units: "-2",
      price: "38.40",
      costBasis: "4126.00",
      cashEquivalent: false,
      optionType: "CALL",
      strikePrice: "240.00",
      expirationDate: "2026-12-18",
      multiplier: "100",
      raw: OPTION.replaceAll("\n  ", ""),
    },
    {
      positionKey: '["tokenised-house",null,null,null,null,null,null,0]',
      kind: "tokenised-house",
      symbol: null,
      description: null,
      currency: null,
      units: "1",
      price: null,
      costBasis: null,
      cashEquivalent: false,
      optionType: null,
      strikePrice: null,
      expirationDate: null,
      multiplier: null,
      raw: other,
    },
  ]);
});

describe("B104: each contract is a position of its own", () => {
  test.each([
    ["a put beside the call", '"CALL"', '"PUT"'],
    ["another strike", '"240.00"', '"245.00"'],
    ["another expiry", "2026-12-18", "2027-01-15"],
    ["another currency", '"USD"', '"CAD"'],
    ["another symbol", "AAPL  261218C00240000", "AAPL 261218C00240000"],
    ["another instrument", '"i-opt"', '"i-opt-2"'],
    ["another kind", '"kind":"option"', '"kind":"other"'],
  ])("%s", (_, from, to) => {
    const [a, b] = keysOf(OPTION, edit(OPTION, from, to));
    expect(a).not.toBe(b);
  });

  test.each([
    ["the multiplier", '"100"', '"50"'],
    ["the units", '"-2"', '"-3"'],
    ["the price", '"38.40"', '"39"'],
    ["the spelling of the strike", '"240.00"', '"240"'],
  ])("%s may change and the position stays the same one", (_, from, to) => {
    expect(keysOf(OPTION)).toEqual(keysOf(edit(OPTION, from, to)));
  });

  test("a changed multiplier is in the data", () => {
    const [position] = readWith(readPositions, positions(edit(OPTION, '"100"', '"50"'))).positions;
    expect(position?.multiplier).toBe("50");
  });
});

describe("two lots of one instrument stay two", () => {
  const small = edit(STOCK, "0.123456789012345678", "1");
  const large = edit(STOCK, "0.123456789012345678", "7");

  test("their keys differ", () => {
    expect(new Set(keysOf(small, large, small)).size).toBe(3);
  });
  test("the same lots in another order make the same rows", () => {
    const rows = (...elements: string[]) =>
      new Map(readWith(readPositions, positions(...elements)).positions.map((row) => [row.positionKey, row.units]));
    expect(rows(small, large)).toEqual(rows(large, small));
  });
});

describe("orders", () => {
  test("an order carries what the wire says", () => {
    expect(readWith(readOrders, `[${ORDER}]`)).toEqual([
      {
        orderKey: "66a033fa#0",
        brokerageOrderId: "66a033fa",
        status: "EXECUTED",
        action: "BUY",
        symbol: "VAB.TO",
        orderType: "Market",
        timeInForce: "FOK",
        totalQuantity: "100",
        openQuantity: "0",
        canceledQuantity: "0",
        filledQuantity: "100",
        executionPrice: "12.34",
        limitPrice: null,
        stopPrice: null,
        timePlaced: "2024-07-23T22:50:22.761Z",
        timeUpdated: "2024-07-23T22:50:23.123456Z",
        timeExecuted: null,
        raw: ORDER.replaceAll("\n  ", ""),
      },
    ]);
  });

  test("the legs of one order are rows of their own, and keep their keys while status and order change", () => {
    const option = (ticker: string, status: string) =>
      `{"brokerage_order_id":"m-1","status":"${status}","action":"BUY_OPEN","universal_symbol":null,"option_symbol":{"id":"o","ticker":"${ticker}"}}`;
    const keys = (...legs: string[]) =>
      new Map(readWith(readOrders, `[${legs.join(",")}]`).map((leg) => [leg.orderKey, leg.symbol]));
    const call = "AAPL  261218C00240000";
    const put = "AAPL  261218P00240000";
    const before = keys(option(call, "PENDING"), option(put, "PENDING"));
    expect([...before.keys()]).toEqual(["m-1#0", "m-1#1"]);
    expect(keys(option(put, "ACCEPTED"), option(call, "EXECUTED"))).toEqual(before);
  });
});
