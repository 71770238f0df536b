import type { Sql } from "postgres";
import { z } from "zod";
import type { WorkType } from "@/lib/domain";
import { readOrders } from "@/sandbox/snaptrade/account-reads";
import { writeWire } from "@/sandbox/snaptrade/wire";
import type { SimAccount } from "@/sandbox/snaptrade/world";

export type Difference = { workType: WorkType; accountId: string; what: string };

const ACCOUNTS_A_QUERY = 50;
const differing = z.array(z.object({ account_id: z.string(), what: z.string() }));

/**
 * The keys whose stored rows are not, row for row, what SnapTrade would answer now. Every field of the wire takes part,
 * numbers as numbers (12.50 is 12.5), and every stored number is compared with its wire element; apart from the
 * service's own readers on purpose, so that a fault of theirs shows.
 */
export async function compareAccounts(sql: Sql, accounts: readonly SimAccount[]): Promise<Difference[]> {
  const found: Difference[] = [];
  for (let from = 0; from < accounts.length; from += ACCOUNTS_A_QUERY) {
    found.push(...(await compareSome(sql, accounts.slice(from, from + ACCOUNTS_A_QUERY))));
  }
  return found;
}

async function compareSome(sql: Sql, accounts: readonly SimAccount[]): Promise<Difference[]> {
  const now = Date.now();
  const wire = accounts.map((account) => ({
    account_id: account.accountId,
    balances: writeWire(account.balances),
    positions: writeWire(account.positions),
    orders: readOrders(account, new URLSearchParams({ state: "all" }), now).body,
    transactions: writeWire(account.activities),
  }));
  // By an array and not by a join: it is looked at before the elements, which cost a thousand times as much.
  const asked = accounts.map(({ accountId }) => accountId);
  const rows = await sql`
    with wire as materialized (
      select account_id, balances::jsonb, positions::jsonb, orders::jsonb, transactions::jsonb
      from json_to_recordset(${JSON.stringify(wire)}::text::json)
        as w (account_id text, balances text, positions text, orders text, transactions text)
    ),
    expected as (
      select account_id, 'balances' as what, jsonb_build_array(b #> '{currency,code}', b -> 'cash', b -> 'buying_power') as row
        from wire, jsonb_array_elements(balances) b
      union all select account_id, 'positions', p from wire, jsonb_array_elements(positions) p
      union all select account_id, 'orders', o from wire, jsonb_array_elements(orders) o
      union all select account_id, 'transactions', t from wire, jsonb_array_elements(transactions) t
    ),
    stored as materialized (
      select account_id, 'balances' as what, jsonb_build_array(currency, cash, buying_power) as row
        from snaptrade_balances where account_id = any (${asked})
      union all select account_id, 'positions', raw::jsonb from snaptrade_positions where account_id = any (${asked})
      union all select account_id, 'orders', raw::jsonb from snaptrade_orders where account_id = any (${asked})
      union all select account_id, 'transactions', raw::jsonb from snaptrade_transactions where account_id = any (${asked})
    ),
    missing as (select * from expected except all select * from stored),
    surplus as (select * from stored except all select * from expected),
    -- The columns that readers use, against the element that they were made from.
    misread as (
      select account_id, 'positions' as what from snaptrade_positions
      where account_id = any (${asked}) and (units, price, cost_basis) is distinct from
        ((raw ->> 'units')::numeric, (raw ->> 'price')::numeric, (raw ->> 'cost_basis')::numeric)
      union all
      select account_id, 'orders' from snaptrade_orders
      where account_id = any (${asked}) and (total_quantity, open_quantity, canceled_quantity, filled_quantity, execution_price, limit_price, stop_price)
        is distinct from ((raw ->> 'total_quantity')::numeric, (raw ->> 'open_quantity')::numeric,
          (raw ->> 'canceled_quantity')::numeric, (raw ->> 'filled_quantity')::numeric,
          (raw ->> 'execution_price')::numeric, (raw ->> 'limit_price')::numeric, (raw ->> 'stop_price')::numeric)
      union all
      select account_id, 'transactions' from snaptrade_transactions
      where account_id = any (${asked}) and (activity_id, price, units, amount, fee, fx_rate, trade_date) is distinct from
        (raw ->> 'id', (raw ->> 'price')::numeric, (raw ->> 'units')::numeric, (raw ->> 'amount')::numeric,
          (raw ->> 'fee')::numeric, (raw ->> 'fx_rate')::numeric, left(raw ->> 'trade_date', 10)::date)
    )
    select account_id, what from missing
    union select account_id, what from surplus
    union select account_id, what from misread
    order by account_id, what`;
  return differing.parse(rows).map(({ account_id, what }) => ({
    workType: what === "transactions" ? "transactions" : "holdings",
    accountId: account_id,
    what,
  }));
}

/** How many keys differ: balances and positions of one account are one key. */
export function differingKeys(differences: readonly Difference[]): string[] {
  return [...new Set(differences.map(({ workType, accountId }) => `${accountId} ${workType}`))];
}
