import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  aBalance,
  anOrder,
  aPosition,
  seedAccounts,
  storedState,
  writeHoldings,
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

async function stored(column: string, table: string): Promise<unknown[]> {
  const { sql } = database;
  const rows = await sql`
    select ${sql(column)}::text as value from ${sql(`public.${table}`)} where account_id = ${account} order by 1`;
  return rows.map((row) => row.value);
}

describe("a part of the holdings", () => {
  it("replaces the stored part as a whole: what it does not name is deleted, what it names is kept or written", async () => {
    await write({ balances: [aBalance({ currency: "CAD" }), aBalance({ currency: "EUR" }), aBalance()] });
    const result = await write({ balances: [aBalance({ currency: "EUR", cash: "1" }), aBalance()] });
    expect(result.balances).toEqual({ written: 1, deleted: 1, unchanged: 1 });
    expect(await stored("currency", "snaptrade_balances")).toEqual(["EUR", "USD"]);
  });

  it("that is empty empties the part, and no other account's", async () => {
    const [other = ""] = await seedAccounts(database.sql, `other-${account}`);
    await writeHoldings(database.sql, other, { orders: [anOrder()] });
    await write({ balances: [aBalance()], ...positions([aPosition()]), orders: [anOrder()] });
    const result = await write({ balances: [], ...positions([]), orders: [] });
    expect(result).toMatchObject({ balances: { deleted: 1 }, positions: { deleted: 1 }, orders: { deleted: 1 } });
    expect(await database.sql`select from public.snaptrade_orders where account_id = ${other}`).toHaveLength(1);
  });

  it.each([{}, { balances: null, positions: null, orders: null }])(
    "that is absent or null writes nothing: %j",
    async (parts) => {
      await write({ balances: [aBalance()], ...positions([aPosition()]), orders: [anOrder()] });
      expect(await write(parts)).toEqual({
        balances: "skipped",
        positions: "skipped",
        orders: "skipped",
        complete: false,
      });
      expect(await stored("currency", "snaptrade_balances")).toHaveLength(1);
      expect(await stored("position_key", "snaptrade_positions")).toHaveLength(1);
      expect(await stored("order_key", "snaptrade_orders")).toHaveLength(1);
    },
  );

  // B92
  it.each([
    { positions: {} },
    { positions: { asOf: "2026-11-20T10:00:00Z", positions: null } },
    { positions: "[]" },
    { balances: {} },
    { balances: "[]" },
    { orders: { detail: "error" } },
    { balances: [aBalance()], orders: 1 },
  ])("that is no list is refused, and nothing is deleted or written: %j", async (parts) => {
    await write({ balances: [aBalance()], ...positions([aPosition()]), orders: [anOrder()] });
    const before = await Promise.all(
      ["snaptrade_balances", "snaptrade_positions", "snaptrade_orders"].map((t) =>
        storedState(database.sql, t, account),
      ),
    );
    await expect(write(parts)).rejects.toMatchObject({ code: "22023" });
    const after = await Promise.all(
      ["snaptrade_balances", "snaptrade_positions", "snaptrade_orders"].map((t) =>
        storedState(database.sql, t, account),
      ),
    );
    expect(after).toEqual(before);
  });

  // B77
  it("that names a key twice keeps the later one", async () => {
    await write({
      balances: [aBalance({ cash: "1" }), aBalance({ cash: "2" })],
      ...positions([aPosition({ units: "1" }), aPosition({ units: "2" })]),
      orders: [anOrder({ status: "PENDING" }), anOrder({ status: "EXECUTED" })],
    });
    expect(await stored("cash", "snaptrade_balances")).toEqual(["2"]);
    expect(await stored("units", "snaptrade_positions")).toEqual(["2"]);
    expect(await stored("status", "snaptrade_orders")).toEqual(["EXECUTED"]);
  });

  // B101
  it("of an account that is not there is refused as a foreign key would be", async () => {
    await expect(writeHoldings(database.sql, "nobody", { balances: [] })).rejects.toMatchObject({ code: "23503" });
  });
});
