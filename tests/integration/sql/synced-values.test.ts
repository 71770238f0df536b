import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  anActivity,
  anOrder,
  aPosition,
  seedAccounts,
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

async function stored(column: string, table: string): Promise<unknown[]> {
  const { sql } = database;
  const rows = await sql`
    select ${sql(column)}::text as value from ${sql(`public.${table}`)} where account_id = ${account} order by 1`;
  return rows.map((row) => row.value);
}

describe("numbers and times", () => {
  // B81
  it.each(["0.123456789012345678", "123456789.123456789", "33.333333333", "-12.50", "0.0", "99999999999999999999.5"])(
    "%s is stored with the digits that came",
    async (units) => {
      await write(positions([aPosition({ units })]));
      expect(await stored("units", "snaptrade_positions")).toEqual([units]);
    },
  );

  it("1e-8 is stored by its value, and the wire element as it came", async () => {
    const raw = '{"units": 1e-8, "note": "\\u0000", "big": 9007199254740993}';
    await write(positions([aPosition({ units: "1e-8", raw })]));
    expect(await stored("units", "snaptrade_positions")).toEqual(["0.00000001"]);
    expect(await stored("raw", "snaptrade_positions")).toEqual([raw]);
  });

  it.each(["soon", "2026-02-30", "2026-13-01T00:00:00Z", "20261218", "2026-12-18T99:00:00Z", "0000-01-01", ""])(
    "a time that cannot be read (%j) is null and fails no write",
    async (text) => {
      await write({
        ...positions([aPosition({ expirationDate: text })], text),
        orders: [anOrder({ timePlaced: text })],
      });
      await writePage(database.sql, account, [anActivity({ tradeDate: text, settlementDate: text })]);
      expect(await stored("time_placed", "snaptrade_orders")).toEqual([null]);
      // The days do not depend on the time beside them.
      const day = text.startsWith("2026-12-18T") ? "2026-12-18" : null;
      expect(await stored("expiration_date", "snaptrade_positions")).toEqual([day]);
      expect(await stored("trade_date", "snaptrade_transactions")).toEqual([day]);
      expect(await stored("positions_as_of", "snaptrade_accounts")).toEqual([null]);
    },
  );

  it.each([
    ["2026-11-20", "2026-11-20 00:00:00+00"],
    ["2026-11-20T14:30:00", "2026-11-20 14:30:00+00"],
    ["2026-11-20 14:30:00.561408+00:00", "2026-11-20 14:30:00.561408+00"],
    ["2026-11-20T09:30:00.5-05:00", "2026-11-20 14:30:00.5+00"],
    ["2026-11-20T14:30Z", "2026-11-20 14:30:00+00"],
  ])("%s is the moment %s, whatever the session's time zone", async (text, moment) => {
    await write({ orders: [anOrder({ timePlaced: text })] });
    expect(await stored("time_placed", "snaptrade_orders")).toEqual([moment]);
    const [row] = await database.sql.begin(async (tx) => {
      await tx`set local timezone = 'America/New_York'`;
      return tx`select public.snaptrade_moment(${text}) = ${moment}::text::timestamptz as same`;
    });
    expect(row?.same).toBe(true);
  });
});
