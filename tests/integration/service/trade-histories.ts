import { expect } from "vitest";
import type { WireObject } from "@/sandbox/snaptrade/wire";
import type { Driver } from "@/tests/integration/service/drive-service";

export const UPDATED = "ACCOUNT_TRANSACTIONS_UPDATED";
export const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);

/** Histories of trades upstream, how a reading of one is cut in the middle, and what is stored of it. */
export function histories(drivenBy: () => Driver) {
  /** So many trades, newest first, `perDay` of them on one date, the newest `from` days ago. */
  function trades(name: string, count: number, { perDay = 3, from = 1 } = {}): WireObject[] {
    const [like] = drivenBy().stack.snaptrade.account("acct-0000")?.activities ?? [];
    return Array.from({ length: count }, (_, i) => ({
      ...like,
      id: `${name}-${i}`,
      description: `${name} ${i}`,
      trade_date: `${day(from + Math.floor(i / perDay))}T00:00:00.000Z`,
    }));
  }

  async function upstream(account: string, activities: readonly WireObject[]): Promise<void> {
    await drivenBy().simulate("PUT", `accounts/${account}`, { activities });
  }

  async function stored(account: string): Promise<string[]> {
    const rows = await drivenBy().sql<{ activity_id: string }[]>`
      select activity_id from snaptrade_transactions where account_id = ${account} order by activity_id`;
    return rows.map(({ activity_id }) => activity_id);
  }

  async function expectStored(account: string, activities: readonly WireObject[]): Promise<void> {
    expect(await stored(account)).toEqual(activities.map(({ id }) => String(id)).sort());
  }

  async function stateOf(account: string): Promise<{ watermark: string | null; cursor: object | null }> {
    const [row] = await drivenBy().sql<{ watermark: string | null; cursor: object | null }[]>`
      select transactions_watermark::text as watermark, transactions_cursor as cursor from snaptrade_accounts
      where account_id = ${account}`;
    if (row === undefined) throw new Error(`No account ${account}`);
    return row;
  }

  function pagesRead(account: string): number {
    return drivenBy()
      .callsOf(account)
      .filter(({ path }) => path.endsWith("/activities")).length;
  }

  /** An account that knows its details and has these trades upstream, none of them stored; and the job of an event. */
  async function withTrades(activities: readonly WireObject[]): Promise<{ account: string; jobId: string }> {
    const account = await drivenBy().synced(drivenBy().nextAccount());
    await upstream(account, activities);
    const { jobId = "" } = await drivenBy().event(UPDATED, account);
    return { account, jobId };
  }

  /** Lets the first page pass and holds the run when it has read the second. */
  function holdSecondPage() {
    drivenBy().hold("run:page").release();
    return drivenBy().hold("run:page");
  }

  /** A run whose first page is stored, and whose second one is cut off half way. */
  async function failSecondPage(account: string, jobId: string): Promise<void> {
    const first = drivenBy().hold("run:page");
    const run = drivenBy().deliver(jobId);
    await first.reached;
    await drivenBy().fault({ accountId: account, path: "activities" }, { drop: "half" });
    first.release();
    expect(await run).toMatchObject({ status: 200, outcome: "failed" });
  }

  return { trades, upstream, stored, expectStored, stateOf, pagesRead, withTrades, holdSecondPage, failSecondPage };
}
