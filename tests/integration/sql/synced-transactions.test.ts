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
/** As the worker reads: the next page begins at the oldest day of the page before. */
const readInSteps = (size: number, history: Activity[]) => writeReading(database.sql, account, history, () => size);

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

  it("that had an id before keep it and their row", async () => {
    await read([trade("a")]);
    expect(await read([trade(null)])).toMatchObject({ inserted: 0 });
    expect(await rows()).toEqual(["a"]);
  });
});

describe("a day that two pages share", () => {
  const before = trade("before", { tradeDate: day(21) });
  const after = trade("after", { tradeDate: day(19) });
  const ways = [
    { way: "page behind page", write: (a: Activity, b: Activity) => read([before, a], [b, after]) },
    { way: "the day begun again", write: (a: Activity, b: Activity) => readInSteps(3, [before, a, b, after]) },
    {
      way: "the day begun again, longer than a page",
      write: (a: Activity, b: Activity) => readInSteps(2, [before, a, b, after]),
    },
    { way: "one row a page", write: (a: Activity, b: Activity) => readInSteps(1, [before, a, b, after]) },
  ];
  const nothing = { inserted: 0, updated: 0, adopted: 0 };

  it.each(ways)("keeps both of two equal trades, at the first reading and at every other: $way", async ({ write }) => {
    expect(await write(trade("a"), trade("b"))).toMatchObject({ inserted: 4 });
    expect(await write(trade("a"), trade("b"))).toMatchObject(nothing);
    expect(await write(trade("b"), trade("a"))).toMatchObject(nothing);
    expect((await rows()).toSorted()).toEqual(["a", "after", "b", "before"]);
  });

  it.each(ways)("adopts an id that was issued anew, on whichever page: $way", async ({ write }) => {
    await read([before, trade("a"), trade("b"), after]);
    const ids = [await rowIdOf("a"), await rowIdOf("b")];
    expect(await write(trade("new"), trade("b"))).toMatchObject({ inserted: 0, updated: 0, adopted: 1 });
    expect([await rowIdOf("new"), await rowIdOf("b")]).toEqual(ids);
    expect(await write(trade("b"), trade("newest"))).toMatchObject({ inserted: 0, updated: 0, adopted: 1 });
    expect([await rowIdOf("newest"), await rowIdOf("b")]).toEqual(ids);
    expect(await rows()).toHaveLength(4);
  });

  it.each(ways)("keeps a new equal trade apart from one that comes with a later page: $way", async ({ write }) => {
    await read([before, trade("a"), after]);
    const id = await rowIdOf("a");
    expect(await write(trade("b"), trade("a"))).toMatchObject({ inserted: 1, adopted: 0 });
    expect(await rowIdOf("a")).toBe(id);
    expect(await rows()).toHaveLength(4);
  });

  it.each(ways)("keeps two equal trades without ids apart: $way", async ({ write }) => {
    expect(await write(trade(null), trade(null))).toMatchObject({ inserted: 4 });
    expect(await write(trade(null), trade(null))).toMatchObject(nothing);
    expect(await rows()).toHaveLength(4);
  });

  it("may go on over many pages and end with an empty one", async () => {
    const pages = [[trade("a")], [trade("b")], [trade("c")], []];
    expect(await read(...pages)).toMatchObject({ inserted: 3 });
    expect(await read(...pages)).toMatchObject({ unchanged: 3 });
    expect(await read([trade("x")], [trade("b")], [trade("c")], [])).toMatchObject({ adopted: 1, unchanged: 2 });
    expect(await rows()).toHaveLength(3);
  });

  it("is also the lack of a day: undated trades are told apart at the last page", async () => {
    const undated = (id: string) => trade(id, { tradeDate: null });
    await readInSteps(2, [before, undated("a"), undated("b")]);
    expect(await readInSteps(2, [before, undated("new"), undated("b")])).toMatchObject({ adopted: 1, inserted: 0 });
    const ids = [await rowIdOf("new"), await rowIdOf("b")];
    expect(await readInSteps(2, [before, undated("third"), undated("new"), undated("b")])).toMatchObject({
      inserted: 1,
    });
    expect([await rowIdOf("new"), await rowIdOf("b")]).toEqual(ids);
  });

  it("leaves a row that it cannot judge to the next page, and writes all others at once", async () => {
    await read([before, trade("a"), after]);
    const next = { oldestDate: day(20), offset: 0 };
    const page = [
      trade("before again", { tradeDate: day(21) }),
      trade("b"),
      trade("c", { description: "another" }),
      trade(null, { description: "yet another" }),
    ];
    const result = await writePage(database.sql, account, page, { seam: null, next });
    // The day of the first is over, so its id was issued anew; "b" may be new, or "a" under another id.
    expect(result).toMatchObject({ adopted: 1, inserted: 2, left: 1, seam: null });
  });
});

// B97
describe("a history that changes while it is read", () => {
  it("stores each row once when a page begins again with rows that are known, and when rows above are gone", async () => {
    const [x, a, b, c] = [20, 19, 19, 18].map((d, index) => trade(`id-${index}`, { tradeDate: day(d) }));
    if (!x || !a || !b || !c) throw new Error("four trades");
    const next = { oldestDate: day(19), offset: 0 };
    await writePage(database.sql, account, [x, a], { seam: null, next });
    // Meanwhile x went away and a newer one came in: both above the day at which the next page begins.
    expect(await writePage(database.sql, account, [a, b, c])).toMatchObject({ inserted: 2, unchanged: 1 });
    const newer = trade("newer", { tradeDate: day(21) });
    expect(await read([newer, a, b, c])).toMatchObject({ inserted: 1, unchanged: 3 });
    expect((await rows()).toSorted()).toEqual(["id-0", "id-1", "id-2", "id-3", "newer"]);
  });

  it("repeats a row within a long day, and it is stored once", async () => {
    await read([trade("a"), trade("b")], [trade("b"), trade("c")]);
    expect((await rows()).toSorted()).toEqual(["a", "b", "c"]);
  });

  it("is complete after a rerun when the run broke off between two pages", async () => {
    const history = Array.from({ length: 10 }, (_, index) =>
      trade(`id-${index}`, { tradeDate: day(20 - Math.floor(index / 2)) }),
    );
    const next = { oldestDate: day(19), offset: 0 };
    await writePage(database.sql, account, history.slice(0, 3), { seam: null, next });
    expect(await readInSteps(3, history)).toMatchObject({ inserted: 7, updated: 0, adopted: 0 });
    expect(await rows()).toHaveLength(10);
  });
});

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
