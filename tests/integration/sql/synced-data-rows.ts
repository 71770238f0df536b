import type postgres from "postgres";
import { expect } from "vitest";
import { z } from "zod";
import { nextCursor } from "@/lib/jobs/read-transactions";
import type { Activity, Balance, Order, Position } from "@/lib/provider/provider";
import type { Cursor } from "@/lib/store/answers";

export const aBalance = (over: Partial<Balance> = {}): Balance => ({
  currency: "USD",
  cash: "300.71",
  buyingPower: "410.71",
  ...over,
});

export const aPosition = (over: Partial<Position> = {}): Position => ({
  positionKey: "option-1",
  kind: "option",
  symbol: "AAPL  261218C00240000",
  description: "Apple Inc. call",
  currency: "USD",
  units: "40",
  price: "113.15",
  costBasis: "108.3353",
  cashEquivalent: false,
  optionType: "CALL",
  strikePrice: "240",
  expirationDate: "2026-12-18",
  multiplier: "100",
  raw: '{"units":"40"}',
  ...over,
});

export const anOrder = (over: Partial<Order> = {}): Order => ({
  orderKey: "order-1:0",
  brokerageOrderId: "order-1",
  status: "EXECUTED",
  action: "BUY",
  symbol: "AAPL",
  orderType: "Limit",
  timeInForce: "Day",
  totalQuantity: "100",
  openQuantity: "10",
  canceledQuantity: "20",
  filledQuantity: "70",
  executionPrice: "12.34",
  limitPrice: "12.35",
  stopPrice: "12.5",
  timePlaced: "2026-11-20T14:30:00.123456Z",
  timeUpdated: "2026-11-20T14:31:00Z",
  timeExecuted: "2026-11-20T14:32:00Z",
  raw: '{"brokerage_order_id":"order-1"}',
  ...over,
});

/** The fingerprint follows the description, so that a test says by it what is the same trade. */
export const anActivity = (over: Partial<Activity> = {}): Activity => ({
  activityId: "id-1",
  fingerprint: `fingerprint of ${over.description ?? "a trade"} on ${over.tradeDate ?? "2026-11-20"}`,
  type: "BUY",
  symbol: "AAPL",
  optionSymbol: null,
  optionType: null,
  description: "a trade",
  currency: "USD",
  price: "0.4",
  units: "5.2",
  amount: "-2.08",
  fee: "0.0",
  fxRate: null,
  tradeDate: "2026-11-20",
  settlementDate: "2026-11-22",
  institution: "Simulated Brokerage",
  externalReferenceId: null,
  raw: '{"price":0.4}',
  ...over,
});

/** A user with his accounts; returns their ids. */
export async function seedAccounts(sql: postgres.Sql, userId: string, count = 1): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `${userId}-account-${index}`);
  await sql`insert into public.snaptrade_users (user_id) values (${userId})`;
  await sql`insert into public.snaptrade_accounts (account_id, user_id) select unnest(${ids}::text[]), ${userId}`;
  return ids;
}

const changes = z.union([
  z.literal("skipped"),
  z.object({ written: z.number(), deleted: z.number(), unchanged: z.number() }),
]);
const holdingsResult = z.object({ balances: changes, positions: changes, orders: changes, complete: z.boolean() });

export async function writeHoldings(sql: postgres.Sql, accountId: string, parts: postgres.JSONValue) {
  const [row] = await sql`select public.snaptrade_write_holdings(${accountId}, ${sql.json(parts)}) as result`;
  return holdingsResult.parse(row?.result);
}

const seam = z.object({ taken: z.array(z.number()), left: z.array(z.json()) });
type Seam = z.infer<typeof seam>;
const transactionsResult = z.object({
  inserted: z.number(),
  updated: z.number(),
  adopted: z.number(),
  unchanged: z.number(),
  left: z.number(),
  seam: seam.nullable(),
});
type TransactionsResult = z.infer<typeof transactionsResult>;
/** Where the next page begins; null: there is none. */
type Next = { oldestDate: string; offset: number } | null;

export async function writePage(
  sql: postgres.Sql,
  accountId: string,
  rows: readonly Activity[],
  { seam, next }: { seam: Seam | null; next: Next } = { seam: null, next: null },
): Promise<TransactionsResult> {
  const [row] = await sql`
    select public.snaptrade_write_transactions(${accountId}, ${sql.json(rows)}, ${sql.json(seam)}, ${sql.json(next)}) as result`;
  return transactionsResult.parse(row?.result);
}

const nothingDone = () => ({ inserted: 0, updated: 0, adopted: 0, unchanged: 0 });

function add(sum: ReturnType<typeof nothingDone>, page: TransactionsResult): void {
  for (const key of ["inserted", "updated", "adopted", "unchanged"] as const) sum[key] += page[key];
}

/** A reading whose pages follow each other row by row, as they do where one day fills more than a page. */
export async function writePages(sql: postgres.Sql, accountId: string, pages: readonly (readonly Activity[])[]) {
  const done = nothingDone();
  let seam: Seam | null = null;
  for (const [index, page] of pages.entries()) {
    const next = index === pages.length - 1 ? null : { oldestDate: "2026-11-29", offset: index + 1 };
    const result: TransactionsResult = await writePage(sql, accountId, page, { seam, next });
    seam = result.seam;
    add(done, result);
  }
  return done;
}

/**
 * A reading as the worker does it: each page begins at the oldest day of the page before. `pageSize` is asked for each
 * page. Newest day first, undated ones last, and days up to the asked one only, as SnapTrade answers.
 */
export async function writeReading(
  sql: postgres.Sql,
  accountId: string,
  history: readonly Activity[],
  pageSize: (page: number) => number,
) {
  const done = nothingDone();
  const day = (activity: Activity) => activity.tradeDate ?? "";
  const sorted = history.toSorted((a, b) => day(b).localeCompare(day(a)));
  let seam: Seam | null = null;
  let cursor: Cursor | null = { startDate: null, endDate: "2026-11-29", oldestDate: "2026-11-29", offset: 0, pages: 0 };
  while (cursor !== null) {
    const { oldestDate, offset, pages } = cursor;
    const found = sorted.filter((activity) => day(activity) <= oldestDate);
    const activities = found.slice(offset, offset + pageSize(pages));
    const next = nextCursor(cursor, { activities, offset, total: found.length });
    const result: TransactionsResult = await writePage(sql, accountId, activities, { seam, next });
    seam = result.seam;
    cursor = next;
    add(done, result);
  }
  return done;
}

/** Everything that shows a write or a lock: values, places and transaction numbers of the stored rows. */
export async function storedState(sql: postgres.Sql, table: string, accountId: string): Promise<string> {
  const rows = await sql`
    select ctid::text, xmin::text, xmax::text, t::text as row
    from ${sql(`public.${table}`)} t where account_id = ${accountId} order by ctid`;
  return JSON.stringify(rows);
}

/** A blocked statement shows in pg_locks of its database; polling is the only way to see it from outside. */
export async function untilSomebodyWaits(sql: postgres.Sql): Promise<void> {
  const waiting = async () => {
    const [row] = await sql`
      select count(*)::int from pg_locks l join pg_stat_activity a using (pid)
      where not l.granted and a.datname = current_database()`;
    return row?.count;
  };
  await expect.poll(waiting, { timeout: 10_000, interval: 20 }).toBeGreaterThan(0);
}
