import { describe, expect, test } from "vitest";
import type { Activity } from "@/lib/provider/provider";
import { readActivities } from "@/lib/provider/read-activities";
import { edit, readWith } from "@/tests/unit/provider/read-with";
import { ACTIVITY, activities } from "@/tests/unit/provider/wire-examples";

function read(...elements: string[]): Activity[] {
  return readWith((json) => readActivities(json, 0), activities(elements)).activities;
}
const fingerprint = (element: string) => read(element)[0]?.fingerprint;

test("an activity carries what the wire says, numbers as they came", () => {
  expect(read(ACTIVITY)).toEqual([
    {
      activityId: "t-1",
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
      type: "BUY",
      symbol: "VAB.TO",
      optionSymbol: null,
      optionType: null,
      description: "WALT DISNEY",
      currency: "USD",
      price: "0.4",
      units: "5.2",
      amount: "263.82",
      fee: "0",
      fxRate: "1.032",
      tradeDate: "2024-03-22T16:27:55Z",
      settlementDate: "2024-03-26T00:00:00Z",
      institution: "Robinhood",
      externalReferenceId: "r-1",
      raw: ACTIVITY.replaceAll("\n  ", ""),
    },
  ]);
});

test("an activity of which little is known is kept", () => {
  const [activity] = read('{"type":"SOMETHING_NEW","trade_date":null,"symbol":null}');
  expect(activity).toMatchObject({
    activityId: null,
    type: "SOMETHING_NEW",
    tradeDate: null,
    symbol: null,
    amount: null,
  });
});

test("B100: two equal trades are two activities, with ids of their own and one fingerprint", () => {
  const [first, second] = read(ACTIVITY, edit(ACTIVITY, '"t-1"', '"t-2"'));
  expect([first?.activityId, second?.activityId]).toEqual(["t-1", "t-2"]);
  expect(first?.fingerprint).toBe(second?.fingerprint);
});

describe("B100: the fingerprint outlives a re-issued id and another spelling", () => {
  test.each([
    ["a re-issued id", '"t-1"', '"t-9"'],
    ["no id", '"id":"t-1",', ""],
    ["another spelling of the amount", "263.82", "263.8200"],
    ["an amount as text", "263.82", '"2.6382e2"'],
    ["another spelling of the fee", '"fee":0', '"fee":0.00'],
    ["another spelling of the time", "2024-03-22T16:27:55.000Z", "2024-03-22 16:27:55+00:00"],
    ["an empty text or null", '"option_type":""', '"option_type":null'],
    ["a new field", '"type":"BUY"', '"type":"BUY","brand_new":1'],
  ])("%s", (_, from, to) => expect(fingerprint(edit(ACTIVITY, from, to))).toBe(fingerprint(ACTIVITY)));
});

describe("B100: a real difference makes another fingerprint", () => {
  test.each([
    ["type", '"BUY"', '"SELL"'],
    ["symbol", '"symbol":"VAB.TO"', '"symbol":"VAB"'],
    ["option symbol", '"option_symbol":null', '"option_symbol":{"ticker":"AAPL  261218C00240000"}'],
    ["option type", '"option_type":""', '"option_type":"BUY_TO_OPEN"'],
    ["description", "WALT DISNEY", "WALT DISNEY CO"],
    ["currency", '"code":"USD"', '"code":"CAD"'],
    ["price", '"price":0.4', '"price":0.41'],
    ["units", '"units":5.2', '"units":-5.2'],
    ["amount", "263.82", "263.83"],
    ["amount, in the 18th digit", "263.82", "263.820000000000001"],
    ["fee", '"fee":0', '"fee":null'],
    ["fx rate", "1.032", "1.033"],
    ["trade date", "2024-03-22T16:27:55.000Z", "2024-03-22T16:27:55.001Z"],
    ["settlement date", "2024-03-26", "2024-03-27"],
    ["institution", "Robinhood", "Questrade"],
    ["reference", '"r-1"', '"r-2"'],
  ])("%s", (_, from, to) => expect(fingerprint(edit(ACTIVITY, from, to))).not.toBe(fingerprint(ACTIVITY)));
});

test("a fingerprint is stored data: the recipe has not changed", () => {
  expect(fingerprint(ACTIVITY)).toBe("0c970aa9f0e6359681f0af07a82fb40ab436580fc5cb129e4b79601871da509b");
});
