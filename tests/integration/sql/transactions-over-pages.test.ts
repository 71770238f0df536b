import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Activity } from "@/lib/provider/provider";
import {
  anActivity,
  seedAccounts,
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
