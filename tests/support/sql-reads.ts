import type { Sql, TransactionSql } from "postgres";

export type TableRead = { table: string; rows: number };

/**
 * What one call of a SQL function reads, by Postgres's own counters of the transaction, so within the function's statements
 * too: rows of tables read from end to end, entries of indexes, and pages of both. Nothing stays of the call.
 */
export type Reads = { seq: TableRead[]; entries: number; pages: number; answer: unknown };

export type PlanMode = "auto" | "force_custom_plan" | "force_generic_plan";

export async function readsOf(sql: Sql, name: string, request: object, plans: PlanMode): Promise<Reads> {
  const rollback = new Error("rollback");
  let reads: Reads | undefined;
  await sql
    .begin(async (tx) => {
      await tx.unsafe(`set local plan_cache_mode = ${plans}`);
      const before = await counters(tx);
      const [row] = await tx`select ${tx(name)}(${JSON.stringify(request)}::text::jsonb) as answer`;
      const after = await counters(tx);
      const seq = after.seq
        .map(({ table, rows }, i) => ({ table, rows: rows - (before.seq[i]?.rows ?? 0) }))
        .filter(({ rows }) => rows > 0);
      const { entries, pages } = after;
      reads = { seq, entries: entries - before.entries, pages: pages - before.pages, answer: row?.answer };
      throw rollback;
    })
    .catch((error: unknown) => {
      if (error !== rollback) throw error;
    });
  if (reads === undefined) throw new Error("The call was not counted");
  return reads;
}

type Counters = { seq: TableRead[]; entries: number; pages: number };

async function counters(tx: TransactionSql): Promise<Counters> {
  const seq = await tx<TableRead[]>`
    select relname as table, pg_stat_get_xact_tuples_returned(oid)::int as rows from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' order by relname`;
  const [sums] = await tx<{ entries: number; pages: number }[]>`
    select sum(pg_stat_get_xact_tuples_returned(oid)) filter (where relkind = 'i')::int as entries,
      sum(pg_stat_get_xact_blocks_fetched(oid))::int as pages
    from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'i')`;
  return { seq, entries: sums?.entries ?? 0, pages: sums?.pages ?? 0 };
}
