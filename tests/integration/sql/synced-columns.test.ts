import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  aBalance,
  anActivity,
  anOrder,
  aPosition,
  seedAccounts,
  storedState,
  writeHoldings,
  writePage,
} from "@/tests/integration/sql/synced-data-rows";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

let database: LocalDatabase;
let account: string;
let users = 0;

beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  users += 1;
  [account = ""] = await seedAccounts(database.sql, `user-${users}`);
});

const write = (parts: Parameters<typeof writeHoldings>[2]) => writeHoldings(database.sql, account, parts);
const positions = (list: ReturnType<typeof aPosition>[], asOf: string | null = "2026-11-20T10:00:00Z") => ({
  positions: { positions: list, asOf },
});

// B104: a column that the comparison leaves out is seen as unchanged for ever.
describe("a change of one field alone is written once and then not again", () => {
  const keep = ["account_id", "updated_at"];
  const tables = {
    snaptrade_balances: {
      keep: [...keep, "currency"],
      base: aBalance(),
      changes: { cash: "300.710", buyingPower: null },
      write: async (row: object) => (await write({ balances: [{ ...aBalance(), ...row }] })).balances,
    },
    snaptrade_positions: {
      keep: [...keep, "position_key"],
      base: aPosition(),
      changes: {
        kind: "other",
        symbol: "AAPL  261218P00240000",
        description: null,
        currency: "CAD",
        units: "-40",
        price: "113.16",
        costBasis: null,
        cashEquivalent: true,
        optionType: "PUT",
        strikePrice: "241",
        expirationDate: "2026-12-19",
        multiplier: "50",
        raw: '{"units":"40" }',
      },
      write: async (row: object) => (await write(positions([{ ...aPosition(), ...row }]))).positions,
    },
    snaptrade_orders: {
      keep: [...keep, "order_key"],
      base: anOrder(),
      changes: {
        brokerageOrderId: "order-2",
        status: "CANCELED",
        action: "SELL",
        symbol: null,
        orderType: "Market",
        timeInForce: "GTC",
        totalQuantity: "101",
        openQuantity: "11",
        canceledQuantity: "21",
        filledQuantity: "71",
        executionPrice: "12.341",
        limitPrice: "12.351",
        stopPrice: null,
        timePlaced: "2026-11-20T14:30:00.123457Z",
        timeUpdated: null,
        timeExecuted: "2026-11-20T14:33:00Z",
        raw: "{}",
      },
      write: async (row: object) => (await write({ orders: [{ ...anOrder(), ...row }] })).orders,
    },
    snaptrade_transactions: {
      keep: [...keep, "id", "activity_id", "occurrence"],
      base: anActivity(),
      changes: {
        fingerprint: "another",
        type: "SELL",
        symbol: "MSFT",
        optionSymbol: "AAPL  261218C00240000",
        optionType: "BUY_TO_OPEN",
        description: "corrected",
        currency: "CAD",
        price: "0.5",
        units: "5.3",
        amount: null,
        fee: "0.1",
        fxRate: "1.35",
        tradeDate: "2026-11-21",
        settlementDate: null,
        institution: "Another",
        externalReferenceId: "reference",
        raw: '{"price":0.40}',
      },
      write: async (row: object) => {
        const { updated, unchanged } = await writePage(database.sql, account, [
          { ...anActivity(), fingerprint: "one", ...row },
        ]);
        return { written: updated, deleted: 0, unchanged };
      },
    },
  };

  it.each(Object.entries(tables))("%s", async (table, { keep, base, changes, write: writeRow }) => {
    const { sql } = database;
    const read = async () => {
      const [row] =
        await sql`select row_to_json(t)::text as row from ${sql(`public.${table}`)} t where account_id = ${account}`;
      return z.record(z.string(), z.unknown()).parse(JSON.parse(String(row?.row)));
    };
    const seen = new Set<string>();
    for (const [field, value] of Object.entries(changes)) {
      await writeRow({});
      const before = await read();
      expect(await writeRow({ [field]: value }), field).toEqual({ written: 1, deleted: 0, unchanged: 0 });
      const changed = await read();
      for (const column of Object.keys(changed)) if (changed[column] !== before[column]) seen.add(column);
      const state = await storedState(sql, table, account);
      expect(await writeRow({ [field]: value }), field).toEqual({ written: 0, deleted: 0, unchanged: 1 });
      expect(await storedState(sql, table, account), field).toBe(state);
    }
    const columns = Object.keys(await read()).filter((column) => !keep.includes(column));
    // A numeric is a number in JSON, so 300.71 and 300.710 look alike here; the write above has shown that they are not.
    seen.add("cash");
    expect(columns.filter((column) => !seen.has(column))).toEqual([]);
    expect(Object.keys(base).filter((field) => !(field in changes))).toHaveLength(1);
  });

  it("and what did not change is neither written nor locked", async () => {
    const parts = {
      balances: [aBalance()],
      ...positions([aPosition(), aPosition({ positionKey: "2" })]),
      orders: [anOrder()],
    };
    await write(parts);
    const tables = ["snaptrade_balances", "snaptrade_positions", "snaptrade_orders", "snaptrade_accounts"];
    const before = await Promise.all(tables.map((table) => storedState(database.sql, table, account)));
    const result = await write(parts);
    expect(result.positions).toEqual({ written: 0, deleted: 0, unchanged: 2 });
    expect(await Promise.all(tables.map((table) => storedState(database.sql, table, account)))).toEqual(before);
  });
});
