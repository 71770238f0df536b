import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Activity } from "@/lib/provider/provider";
import {
  anActivity,
  seedAccounts,
  storedState,
  untilSomebodyWaits,
  writePage,
  writePages,
  writeReading,
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

/** Pages that follow each other row by row; one page is the whole answer. */
const read = (...pages: Activity[][]) => writePages(database.sql, account, pages);

/** Row ids by provider id, oldest row first. */
async function rows(): Promise<(string | null)[]> {
  const found = await database.sql`
    select activity_id from public.snaptrade_transactions where account_id = ${account} order by id`;
  return found.map((row) => row.activity_id);
}

async function rowIdOf(activityId: string): Promise<string> {
  const [row] = await database.sql`
    select id::text from public.snaptrade_transactions where account_id = ${account} and activity_id = ${activityId}`;
  return String(row?.id);
}

const day = (n: number) => `2026-11-${String(n).padStart(2, "0")}`;
const trade = (activityId: string | null, over: Partial<Activity> = {}) => anActivity({ activityId, ...over });

describe("transactions with ids", () => {
  it("are one row an id, and the same page again writes nothing", async () => {
    const page = [
      trade("a", { tradeDate: day(20) }),
      trade("b", { tradeDate: day(19) }),
      trade(null, { tradeDate: day(18) }),
    ];
    expect(await read(page)).toMatchObject({ inserted: 3 });
    const state = await storedState(database.sql, "snaptrade_transactions", account);
    expect(await read(page)).toEqual({ inserted: 0, updated: 0, adopted: 0, unchanged: 3 });
    expect(await storedState(database.sql, "snaptrade_transactions", account)).toBe(state);
  });

  // B100
  it("stay two rows when two genuine trades are equal in everything but the id", async () => {
    await read([trade("a"), trade("b")]);
    await read([trade("b"), trade("a")]);
    expect((await rows()).toSorted()).toEqual(["a", "b"]);
  });

  // B77
  it("that come twice in a page are one row, the later one stands, and the rest of the page is saved", async () => {
    const result = await read([trade("a", { amount: "1" }), trade("b"), trade("a", { amount: "2" })]);
    expect(result).toMatchObject({ inserted: 2 });
    const found = await database.sql`
      select amount::text from public.snaptrade_transactions where account_id = ${account} and activity_id = 'a'`;
    expect(found).toEqual([{ amount: "2" }]);
  });

  it("that are corrected keep their row, also when the corrected one equals another trade", async () => {
    await read([trade("a"), trade("b", { description: "other" })]);
    const id = await rowIdOf("b");
    expect(await read([trade("a"), trade("b")])).toEqual({ inserted: 0, updated: 1, adopted: 0, unchanged: 1 });
    expect(await rowIdOf("b")).toBe(id);
    expect(await rows()).toHaveLength(2);
  });

  it("that change places with each other in one page keep their rows", async () => {
    await read([trade("a"), trade("b", { description: "other" })]);
    const ids = [await rowIdOf("a"), await rowIdOf("b")];
    expect(await read([trade("a", { description: "other" }), trade("b")])).toMatchObject({ updated: 2, inserted: 0 });
    expect([await rowIdOf("a"), await rowIdOf("b")]).toEqual(ids);
  });

  it("that SnapTrade does not name any more keep their rows", async () => {
    await read([trade("a"), trade("b", { description: "other" })]);
    await read([trade("a")]);
    expect((await rows()).toSorted()).toEqual(["a", "b"]);
  });

  // B98
  it("that are issued anew under another id are adopted: same row, same place for what a product keeps beside it", async () => {
    await read([trade("a"), trade("other", { description: "other" })]);
    const id = await rowIdOf("a");
    expect(await read([trade("new"), trade("other", { description: "other" })])).toMatchObject({
      adopted: 1,
      inserted: 0,
    });
    expect(await rowIdOf("new")).toBe(id);
    expect(await rows()).toHaveLength(2);
  });

  it("are adopted by a row that has no id yet before one whose id is gone", async () => {
    await read([trade("a"), trade(null)]);
    const id = await rowIdOf("a");
    await read([trade("new")]);
    expect(await rowIdOf("a")).toBe(id);
    expect(await rows()).toEqual(expect.arrayContaining(["a", "new"]));
  });

  it("choose before an equal trade without an id does", async () => {
    await read([trade("a")]);
    const id = await rowIdOf("a");
    expect(await read([trade(null), trade("new")])).toMatchObject({ adopted: 1, inserted: 1 });
    expect(await rowIdOf("new")).toBe(id);
  });

  it("of which one of two equal ones is issued anew leave the other alone", async () => {
    await read([trade("a"), trade("b")]);
    const b = await rowIdOf("b");
    expect(await read([trade("new"), trade("b")])).toMatchObject({ adopted: 1, unchanged: 1 });
    expect(await rowIdOf("b")).toBe(b);
    expect(await rows()).toHaveLength(2);
  });

  it("of which a third equal one is really new become three", async () => {
    await read([trade("a"), trade("b")]);
    expect(await read([trade("c"), trade("a"), trade("b")])).toMatchObject({ inserted: 1, unchanged: 2 });
  });

  it("of another account are another account's, even with the same id", async () => {
    const [other = ""] = await seedAccounts(database.sql, `other-${account}`);
    await read([trade("a")]);
    expect(await writePage(database.sql, other, [trade("a")])).toMatchObject({ inserted: 1 });
  });
});

// B100
describe("transactions without ids", () => {
  it("that are equal stay two, and the same page again writes nothing", async () => {
    await read([trade(null), trade(null)]);
    expect(await read([trade(null), trade(null)])).toEqual({ inserted: 0, updated: 0, adopted: 0, unchanged: 2 });
  });

  it("whose ids appear later adopt them without doubling", async () => {
    await read([trade(null), trade(null)]);
    expect(await read([trade("a"), trade("b")])).toMatchObject({ adopted: 2, inserted: 0 });
    expect(await read([trade("b"), trade("a")])).toMatchObject({ unchanged: 2 });
  });

  it("beside an equal one with an id are a trade of their own", async () => {
    await read([trade("a"), trade(null)]);
    expect(await read([trade(null), trade("a")])).toMatchObject({ unchanged: 2 });
    expect(await rows()).toHaveLength(2);
  });

  it("that had an id before keep their row, and get the id again when it comes again", async () => {
    await read([trade("a")]);
    const id = await rowIdOf("a");
    expect(await read([trade(null)])).toMatchObject({ inserted: 0, updated: 1 });
    expect(await rows()).toEqual([null]);
    expect(await read([trade("a")])).toMatchObject({ inserted: 0, adopted: 1 });
    expect(await rowIdOf("a")).toBe(id);
  });
});

it.each([null, "new"])(
  "no trade is missing when one moves to an older page and its equal (id %s) comes to its old day",
  async (id) => {
    const on = (day: number, activityId: string | null) =>
      trade(activityId, { tradeDate: `2026-11-0${day}`, fingerprint: `day ${day}` });
    const inPagesOfOne = (trades: Activity[]) => writeReading(database.sql, account, trades, () => 1);
    await inPagesOfOne([on(3, "moves"), on(2, "stays")]);
    const moved = [on(3, id), on(2, "stays"), on(1, "moves")];
    await inPagesOfOne(moved);
    const stored = await database.sql`
    select activity_id, fingerprint from public.snaptrade_transactions where account_id = ${account}`;
    expect(stored).toHaveLength(3);
    expect(stored).toEqual(
      expect.arrayContaining(moved.map(({ activityId, fingerprint }) => ({ activity_id: activityId, fingerprint }))),
    );
    expect(await inPagesOfOne(moved)).toMatchObject({ inserted: 0, updated: 0, adopted: 0 });
  },
);

// B96
it.each([
  { pages: "the same page", second: {} },
  { pages: "two versions of it", second: { description: "corrected" } },
])(
  "two writers without any lock leave one row a trade, and the later one fails as a whole: $pages",
  async ({ second }) => {
    const ids = ["a", "b", "c"];
    const rival = await database.sql.reserve();
    const first = await database.sql.reserve();
    try {
      await first`begin`;
      await writePage(
        first,
        account,
        ids.map((id) => trade(id)),
      );
      const lost = writePage(
        rival,
        account,
        [...ids, "d"].map((id) => trade(id, second)),
      ).catch((error: unknown) => error);
      await untilSomebodyWaits(database.sql);
      await first`commit`;
      expect(await lost).toMatchObject({ code: "23505" });
    } finally {
      first.release();
      rival.release();
    }
    expect((await rows()).toSorted()).toEqual(ids);
  },
);

it.each([null, {}, "[]"])("rows that are no list are refused and write nothing: %j", async (value) => {
  const { sql } = database;
  await expect(sql`
    select public.snaptrade_write_transactions(${account}, ${value === null ? null : sql.json(value)}, null, null)
  `).rejects.toMatchObject({ code: "22023" });
});

it("rows of an account that is not there are refused (B101)", async () => {
  await expect(writePage(database.sql, "nobody", [trade("a")])).rejects.toMatchObject({ code: "23503" });
});
