import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MIGRATIONS_DIR } from "@/sandbox/postgres/apply-migrations";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

let database: LocalDatabase;
let lockDown: string;

beforeAll(async () => {
  database = await freshDatabase();
  lockDown = await readFile(path.join(MIGRATIONS_DIR, "20260599_lock_down_functions.sql"), "utf8");
});
afterAll(() => database.close());

/** Every right that anon, authenticated or everybody has on our functions, tables and sequences. */
async function rightsOfReaders(): Promise<string[]> {
  const found = await database.sql`
    select p.oid::regprocedure::text as object, r.rolname, 'EXECUTE' as right
    from pg_proc p, pg_roles r
    where p.pronamespace = 'public'::regnamespace and r.rolname in ('anon', 'authenticated')
      and has_function_privilege(r.oid, p.oid, 'EXECUTE')
    union all
    select c.oid::regclass::text, coalesce(r.rolname, 'public'), a.privilege_type
    from pg_class c, aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
    where c.relnamespace = 'public'::regnamespace and coalesce(r.rolname, 'public') in ('public', 'anon', 'authenticated')`;
  return found.map((row) => `${row.rolname}: ${row.right} on ${row.object}`).toSorted();
}

const READERS_RIGHTS = ["accounts", "balances", "orders", "positions", "transactions"].map(
  (table) => `authenticated: SELECT on snaptrade_${table}`,
);

describe("the functions of the service", () => {
  it("are executable by the service role only; of the tables, readers may select their five", async () => {
    expect(await rightsOfReaders()).toEqual(READERS_RIGHTS);
    const denied = await database.sql`
      select p.oid::regprocedure::text from pg_proc p
      where p.pronamespace = 'public'::regnamespace and not has_function_privilege('service_role', p.oid, 'EXECUTE')`;
    expect(denied).toEqual([]);
  });

  it("run with their caller's rights and an empty search path", async () => {
    const odd = await database.sql`
      select p.oid::regprocedure::text from pg_proc p
      where p.pronamespace = 'public'::regnamespace
        and (p.prosecdef or coalesce(not p.proconfig @> array['search_path=""'], true))`;
    expect(odd).toEqual([]);
  });

  it("with their owner's rights are one, about the caller only, outside the schema that the API exposes", async () => {
    const owners = await database.sql`
      select p.oid::regprocedure::text as name, p.pronargs, p.proconfig from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
      where p.prosecdef and n.nspname not in ('auth', 'pg_catalog', 'information_schema')`;
    expect(owners).toEqual([
      { name: "snaptrade_private.own_account_ids()", pronargs: 0, proconfig: ['search_path=""'] },
    ]);
  });
});

describe("the lock-down at the end of a release", () => {
  it("takes back what other default privileges gave, and running it again changes nothing", async () => {
    const { sql } = database;
    await sql.unsafe(`
      grant execute on all functions in schema public to public, anon, authenticated;
      grant all on all tables in schema public to public, anon, authenticated;
      grant all on all sequences in schema public to public, anon, authenticated;
      revoke all on all tables in schema public from service_role;
      revoke execute on all functions in schema public from service_role;
    `);
    expect((await rightsOfReaders()).length).toBeGreaterThan(50);
    for (let run = 0; run < 2; run += 1) {
      await sql.begin((tx) => tx.unsafe(lockDown));
      expect(await rightsOfReaders()).toEqual(READERS_RIGHTS);
      const [service] = await sql`
        select bool_and(has_function_privilege('service_role', p.oid, 'EXECUTE')) as executes,
          (select bool_and(has_table_privilege('service_role', c.oid, 'SELECT, INSERT') and has_table_privilege('service_role', c.oid, 'DELETE'))
            from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r') as writes
        from pg_proc p where p.pronamespace = 'public'::regnamespace`;
      expect(service).toEqual({ executes: true, writes: true });
    }
  });

  it("refuses a release with a table that is not under row-level security", async () => {
    const { sql } = database;
    const release = sql.begin(async (tx) => {
      await tx`create table public.snaptrade_forgotten (id bigint)`;
      await tx.unsafe(lockDown);
    });
    await expect(release).rejects.toThrow(/row-level security is off on snaptrade_forgotten/);
  });
});
