import type { Driver } from "@/tests/integration/service/drive-service";

export type Stored = { positions: boolean; balances: boolean; orders: boolean };

/** Which parts of an account's stored holdings show this upstream version (the simulator's bumps count from 2). */
export async function storedVersion({ sql }: Driver, account: string, version: number): Promise<Stored> {
  const units = `${version}.000000000000000001`;
  const amount = `${version}.50`;
  const [found] = await sql<Stored[]>`select
    exists (select from snaptrade_positions where account_id = ${account} and units::text = ${units}) as positions,
    exists (select from snaptrade_balances where account_id = ${account} and cash::text = ${amount}) as balances,
    exists (select from snaptrade_orders where account_id = ${account} and execution_price::text = ${amount}) as orders`;
  if (found === undefined) throw new Error("A query without a row");
  return found;
}

/** How many rows of each part are stored. */
export async function storedCounts({ sql }: Driver, account: string): Promise<Record<keyof Stored, number>> {
  const [found] = await sql<Record<keyof Stored, number>[]>`select
    (select count(*)::int from snaptrade_positions where account_id = ${account}) as positions,
    (select count(*)::int from snaptrade_balances where account_id = ${account}) as balances,
    (select count(*)::int from snaptrade_orders where account_id = ${account}) as orders`;
  if (found === undefined) throw new Error("A query without a row");
  return found;
}

/** When the last complete reading of the holdings began. */
export async function holdingsSyncedAt({ sql }: Driver, account: string): Promise<Date | null> {
  const [found] = await sql<{ at: Date | null }[]>`
    select holdings_synced_at as at from snaptrade_accounts where account_id = ${account}`;
  return found?.at ?? null;
}
