import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Activity } from "@/lib/provider/provider";
import { anActivity, seedAccounts, writePages, writeReading } from "@/tests/integration/sql/synced-data-rows";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

let database: LocalDatabase;
let users = 0;

beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.close());

/** Few days and few kinds, so that equal trades and days that run over a page are the rule. */
type Trade = { id: string | null; day: number | null; kind: number };

const aTrade = fc.record({
  named: fc.integer({ min: 0, max: 4 }).map((n) => n > 0),
  day: fc.option(fc.integer({ min: 1, max: 3 }), { freq: 8 }),
  kind: fc.integer({ min: 0, max: 1 }),
});

type Change = {
  what: "re-issue" | "name" | "correct" | "add";
  index: number;
  trade: { named: boolean; day: number | null; kind: number };
};

/** What happens at SnapTrade between two readings, to the trade at `index` (or, for `add`, before it). */
const aChange: fc.Arbitrary<Change> = fc.record({
  what: fc.constantFrom("re-issue" as const, "name" as const, "correct" as const, "add" as const),
  index: fc.nat({ max: 20 }),
  trade: aTrade,
});

const aRound = fc.record({
  changes: fc.array(aChange, { maxLength: 3 }),
  pageSizes: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }),
  way: fc.constantFrom("as the worker", "row by row", "row by row, an empty page last"),
});

const fingerprint = ({ day, kind }: Trade) => `${day}-${kind}`;

function activity({ id, day, kind }: Trade): Activity {
  return anActivity({
    activityId: id,
    description: `kind ${kind}`,
    tradeDate: day === null ? null : `2026-11-0${day}`,
    fingerprint: fingerprint({ id, day, kind }),
    raw: JSON.stringify({ id, day, kind }),
  });
}

/** Newest day first, undated trades last; the sizes are used in turn. */
function pagesOf(trades: readonly Trade[], sizes: readonly number[]): Activity[][] {
  const sorted = trades.toSorted((a, b) => (b.day ?? 0) - (a.day ?? 0)).map(activity);
  const pages: Activity[][] = [];
  for (let page = 0; sorted.length > 0; page += 1) pages.push(sorted.splice(0, sizes[page % sizes.length]));
  return pages;
}

/**
 * One change a trade and reading: a new id and other attributes at once make another trade for anybody who looks. Nor can
 * anybody tell, before an older page is read, that a trade was moved there, if its equal has come to its old day at once;
 * such a move is taken back here, and has a test of its own.
 */
function happen(trades: Trade[], changes: readonly Change[], issue: () => string) {
  const touched = new Set<Trade>();
  const moved = new Map<Trade, Trade>();
  for (const { what, index, trade } of changes) {
    if (what === "add") {
      const added = { ...trade, id: trade.named ? issue() : null };
      touched.add(added);
      trades.splice(index % (trades.length + 1), 0, added);
      continue;
    }
    const old = trades[index % Math.max(1, trades.length)];
    if (old === undefined || touched.has(old)) continue;
    touched.add(old);
    if (what === "re-issue" && old.id !== null) old.id = issue();
    if (what === "name" && old.id === null) old.id = issue();
    if (what === "correct" && old.id !== null) {
      if ((trade.day ?? 0) < (old.day ?? 0)) moved.set(old, { ...old });
      Object.assign(old, { day: trade.day, kind: trade.kind });
    }
  }
  for (const [trade, before] of moved) {
    const replaced = trades.some((other) => touched.has(other) && fingerprint(other) === fingerprint(before));
    if (replaced) Object.assign(trade, before);
  }
}

it("however a history is cut into pages and its ids change, each trade is on exactly one row", async () => {
  const history = fc.array(aTrade, { maxLength: 8 });
  const rounds = fc.array(aRound, { minLength: 1, maxLength: 4 });
  const property = fc.asyncProperty(history, rounds, async (first, rounds) => {
    users += 1;
    const [account = ""] = await seedAccounts(database.sql, `user-${users}`);
    const read = (way: string, sizes: number[]) => {
      if (way === "as the worker") {
        return writeReading(database.sql, account, trades.map(activity), (page) => sizes[page % sizes.length] ?? 1);
      }
      const pages = pagesOf(trades, sizes);
      return writePages(database.sql, account, way === "row by row" && pages.length > 0 ? pages : [...pages, []]);
    };
    let issued = 0;
    const issue = () => `id-${issued++}`;
    const trades: Trade[] = first.map(({ named, ...trade }) => ({ ...trade, id: named ? issue() : null }));
    /** An id never moves to another row, whatever happens to its equals. */
    const rowOf = new Map<string, string>();

    for (const { changes, pageSizes, way } of rounds) {
      happen(trades, changes, issue);
      await read(way, pageSizes);

      const stored = await database.sql`
        select id::text, activity_id, fingerprint from public.snaptrade_transactions where account_id = ${account}`;
      expect(stored.map((row) => row.fingerprint).toSorted()).toEqual(trades.map(fingerprint).toSorted());
      for (const trade of trades) {
        if (trade.id === null) continue;
        const [row, ...others] = stored.filter((found) => found.activity_id === trade.id);
        expect(others).toEqual([]);
        expect(row).toMatchObject({ fingerprint: fingerprint(trade), id: rowOf.get(trade.id) ?? row?.id });
        rowOf.set(trade.id, String(row?.id));
      }
      const nothing = { inserted: 0, updated: 0, adopted: 0 };
      expect(await read(way, pageSizes)).toMatchObject(nothing);
      expect(await read("as the worker", [1000])).toMatchObject({ inserted: 0, adopted: 0 });
    }
  });
  await fc.assert(property, { numRuns: 50 });
}, 120_000);
