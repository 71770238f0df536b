import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MIGRATIONS_DIR } from "@/sandbox/postgres/apply-migrations";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

const MIGRATION = path.join(MIGRATIONS_DIR, "20260514_list_jobs_by_index.sql");
const NAMES = ["snaptrade_sync_jobs_account", "snaptrade_sync_jobs_created"] as const;

let database: LocalDatabase;

/** As the table was before the migration: without the indexes, and with jobs. */
beforeEach(async () => {
  database = await freshDatabase();
  for (const name of NAMES) await database.sql.unsafe(`drop index public.${name}`);
  await database.sql.unsafe(`
    insert into snaptrade_users (user_id) values ('user');
    insert into snaptrade_connections (connection_id, user_id) values ('conn', 'user');
    insert into snaptrade_accounts (account_id, user_id, connection_id) values ('one', 'user', 'conn'), ('two', 'user', 'conn');
    insert into snaptrade_sync_jobs (work_type, account_id, reason) values ('holdings', 'one', 'event'), ('holdings', 'two', 'event')`);
});
afterEach(() => database.close());

const migrate = async () => {
  const text = await readFile(MIGRATION, "utf8");
  await database.sql.begin((tx) => tx.unsafe(text));
};
const indexes = () => database.sql`
  select i.indexrelid::regclass::text as name, i.indisvalid as valid, i.indisunique as unique, i.indexrelid::int as id
  from pg_index i where i.indexrelid::regclass::text = any (${[...NAMES]}) order by 1`;
const EXPECTED = NAMES.map((name) => ({ name, valid: true, unique: false }));

test("on a table with jobs both indexes are built, and a rerun builds nothing", async () => {
  await migrate();
  const built = await indexes();
  expect(built).toMatchObject(EXPECTED);
  await migrate();
  expect(await indexes()).toEqual(built);
});

test("an index that a failed concurrent build left behind is replaced, the other one stays", async () => {
  const [account, created] = NAMES;
  await database.sql.unsafe(`create index ${account} on snaptrade_sync_jobs (account_id, created_at, id)`);
  const failing = `create unique index concurrently ${created} on snaptrade_sync_jobs (work_type)`;
  await expect(database.sql.unsafe(failing)).rejects.toMatchObject({ code: "23505" });
  const [before, broken] = await indexes();
  expect(broken).toMatchObject({ name: created, valid: false });
  await migrate();
  const after = await indexes();
  expect(after).toMatchObject(EXPECTED);
  expect(after[0]?.id).toBe(before?.id);
});
