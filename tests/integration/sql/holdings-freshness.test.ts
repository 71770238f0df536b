import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { aBalance, anOrder, aPosition, seedAccounts, writeHoldings } from "@/tests/integration/sql/synced-data-rows";
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

const EARLY = "2026-11-20T10:00:00Z";
const LATE = "2026-11-20T11:00:00Z";

function readParts(units: string, asOf: string | null) {
  return {
    balances: [aBalance({ cash: units })],
    positions: { positions: [aPosition({ units })], asOf },
    orders: [anOrder({ totalQuantity: units })],
  };
}

async function storedUnits() {
  const [row] = await database.sql`
    select (select units::text from public.snaptrade_positions where account_id = ${account}) as positions,
      (select cash::text from public.snaptrade_balances where account_id = ${account}) as balances,
      (select total_quantity::text from public.snaptrade_orders where account_id = ${account}) as orders`;
  return { ...row };
}

async function failUpstream(parts: string[], at: string): Promise<void> {
  await database.sql`
    update public.snaptrade_accounts set failed_parts = ${parts}, failed_parts_at = ${at} where account_id = ${account}`;
}

const asOf = async () =>
  (await database.sql`select positions_as_of from public.snaptrade_accounts where account_id = ${account}`)[0]
    ?.positions_as_of;

describe("positions and the time they were true (I7)", () => {
  it("older ones than the stored are an answer, but do not replace them", async () => {
    await writeHoldings(database.sql, account, readParts("2", LATE));
    const result = await writeHoldings(database.sql, account, readParts("1", EARLY));
    expect(result).toMatchObject({ positions: "skipped", complete: true });
    expect(await storedUnits()).toEqual({ positions: "2", balances: "1", orders: "1" });
    expect(await asOf()).toEqual(new Date(LATE));
  });

  it("as old or newer ones replace them and move the time", async () => {
    await writeHoldings(database.sql, account, readParts("1", EARLY));
    await writeHoldings(database.sql, account, readParts("2", EARLY));
    expect(await storedUnits()).toMatchObject({ positions: "2" });
    await writeHoldings(database.sql, account, readParts("3", LATE));
    expect(await storedUnits()).toMatchObject({ positions: "3" });
    expect(await asOf()).toEqual(new Date(LATE));
  });

  it("that say no time are taken, for the fence orders the reads, and leave the time where it is", async () => {
    await writeHoldings(database.sql, account, readParts("1", EARLY));
    expect(await writeHoldings(database.sql, account, readParts("2", null))).toMatchObject({ complete: true });
    expect(await storedUnits()).toMatchObject({ positions: "2" });
    expect(await asOf()).toEqual(new Date(EARLY));
  });

  it("that say no time and are empty empty nothing, and the run is not complete", async () => {
    await writeHoldings(database.sql, account, readParts("1", EARLY));
    const result = await writeHoldings(database.sql, account, {
      ...readParts("2", null),
      positions: { positions: [], asOf: null },
    });
    expect(result).toMatchObject({ positions: "skipped", complete: false });
    expect(await storedUnits()).toMatchObject({ positions: "1" });
  });

  it("from the future do not lock out those of today", async () => {
    await writeHoldings(database.sql, account, readParts("1", "2199-01-01T00:00:00Z"));
    expect(await asOf()).toBeNull();
    await writeHoldings(database.sql, account, readParts("2", EARLY));
    expect(await storedUnits()).toMatchObject({ positions: "2" });
  });
});

// B91
describe("a part that failed upstream (I7)", () => {
  it.each(["balances", "positions", "orders"] as const)(
    "leaves the stored %s alone; the other parts are written",
    async (part) => {
      await writeHoldings(database.sql, account, readParts("1", EARLY));
      await failUpstream([part], LATE);
      const result = await writeHoldings(database.sql, account, readParts("2", EARLY));
      expect(result).toMatchObject({ [part]: "skipped", complete: false });
      expect(await storedUnits()).toEqual({ balances: "2", positions: "2", orders: "2", [part]: "1" });
    },
  );

  it("does not keep out positions that are newer than the failure", async () => {
    await writeHoldings(database.sql, account, readParts("1", EARLY));
    await failUpstream(["positions"], "2026-11-20T10:30:00Z");
    expect(await writeHoldings(database.sql, account, readParts("2", LATE))).toMatchObject({ complete: true });
    expect(await storedUnits()).toMatchObject({ positions: "2" });
  });

  it("keeps out positions that do not say their time", async () => {
    await writeHoldings(database.sql, account, readParts("1", EARLY));
    await failUpstream(["positions"], EARLY);
    expect(await writeHoldings(database.sql, account, readParts("2", null))).toMatchObject({ complete: false });
    expect(await storedUnits()).toMatchObject({ positions: "1" });
  });
});

describe("the holdings are complete", () => {
  it("when all three parts are good", async () => {
    expect(await writeHoldings(database.sql, account, readParts("1", EARLY))).toMatchObject({ complete: true });
  });

  it.each(["balances", "positions", "orders"])("not when %s are missing", async (part) => {
    const result = await writeHoldings(database.sql, account, { ...readParts("1", EARLY), [part]: null });
    expect(result.complete).toBe(false);
  });

  it("when the brokerage has no orders at all, and stored orders stay", async () => {
    await writeHoldings(database.sql, account, readParts("1", EARLY));
    const { balances, positions } = readParts("2", LATE);
    const result = await writeHoldings(database.sql, account, { balances, positions, ordersUnsupported: true });
    expect(result).toMatchObject({ orders: "skipped", complete: true });
    expect(await storedUnits()).toEqual({ positions: "2", balances: "2", orders: "1" });
  });
});
