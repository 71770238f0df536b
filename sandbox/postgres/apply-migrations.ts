import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import postgres from "postgres";
import { once } from "@/sandbox/postgres/databases";

export const MIGRATIONS_DIR = path.resolve(import.meta.dirname, "../../supabase/migrations");

/**
 * Runs each `<version>_<name>.sql` of the folder that has not run yet, in the order of the names, each in a
 * transaction of its own together with its row in `supabase_migrations.schema_migrations` (the table that the
 * Supabase CLI keeps, so that either can go on where the other stopped). A rerun does nothing.
 * @returns the file names that were run now
 * @throws naming the file whose SQL failed; what stood before it stays applied
 */
export async function applyMigrations(url: string, dir: string = MIGRATIONS_DIR): Promise<string[]> {
  const migrations = await readMigrations(dir);
  return once(url, async (sql) => {
    await sql.unsafe(`
      create schema if not exists supabase_migrations;
      create table if not exists supabase_migrations.schema_migrations (
        version text primary key, statements text[], name text
      );
    `);
    const applied: string[] = [];
    for (const { file, version, name, text } of migrations) {
      await sql
        .begin(async (tx) => {
          await tx`lock table supabase_migrations.schema_migrations in exclusive mode`;
          const [known] = await tx`select from supabase_migrations.schema_migrations where version = ${version}`;
          if (known !== undefined) return;
          await tx.unsafe(text);
          await tx`insert into supabase_migrations.schema_migrations ${tx({ version, name, statements: [text] })}`;
          applied.push(file);
        })
        .catch((error: unknown) => {
          throw new Error(`Migration ${describe(file, text, error)}`, { cause: error });
        });
    }
    return applied;
  });
}

/** Postgres counts characters from the beginning of the file; people count lines. */
function describe(file: string, text: string, error: unknown): string {
  if (!(error instanceof postgres.PostgresError)) return `${file} failed: ${String(error)}`;
  const at = error.position === undefined ? "" : `:${text.slice(0, Number(error.position)).split("\n").length}`;
  return `${file}${at} failed: ${error.code} ${error.message}`;
}

type Migration = { file: string; version: string; name: string; text: string };

async function readMigrations(dir: string): Promise<Migration[]> {
  const files = (await readdir(dir)).filter((file) => file.endsWith(".sql")).sort();
  const migrations: Migration[] = [];
  for (const file of files) {
    const [, version, name] = /^(\d+)_(.+)\.sql$/.exec(file) ?? [];
    if (version === undefined || name === undefined) {
      throw new Error(`${path.join(dir, file)}: the name of a migration must be <version>_<name>.sql.`);
    }
    const twin = migrations.find((other) => other.version === version);
    if (twin !== undefined) throw new Error(`Migrations ${twin.file} and ${file} have the same version ${version}.`);
    migrations.push({ file, version, name, text: await readFile(path.join(dir, file), "utf8") });
  }
  return migrations;
}
