import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { WorldClock } from "@/bench/world/clock";
import { applyMigrations, MIGRATIONS_DIR } from "@/sandbox/postgres/apply-migrations";
import { once } from "@/sandbox/postgres/databases";
import { startPostgres } from "@/sandbox/postgres/start-postgres";
import { installSupabaseBase } from "@/sandbox/supabase/install-base";

const TEMPLATE = "bench_template";
const SQL_DIR = path.resolve(import.meta.dirname, "../sql");

export type Databases = {
  /** A new database whose time is the row's. */
  create(name: string, clock: WorldClock): Promise<string>;
  drop(name: string): Promise<void>;
  close(): Promise<void>;
};

/** Postgres with a template in which the migrations stand as they are, but for the clock that they ask. */
export async function startDatabases(): Promise<Databases> {
  const postgres = await startPostgres();
  const url = await postgres.createDatabase(TEMPLATE);
  await installSupabaseBase(url);
  const folder = await mkdtemp(path.join(tmpdir(), "snaptrade-sync-bench-"));
  try {
    await writeFile(path.join(folder, "0_clock.sql"), clockSql({ scale: 1, startMs: 0 }));
    for (const [dir, prefix] of [
      [MIGRATIONS_DIR, ""],
      [SQL_DIR, "9"],
    ] as const) {
      for (const file of (await readdir(dir)).filter((name) => name.endsWith(".sql"))) {
        const text = await readFile(path.join(dir, file), "utf8");
        await writeFile(path.join(folder, `${prefix}${file}`), onWorldClock(text));
      }
    }
    await applyMigrations(url, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return {
    async create(name, clock) {
      const made = await postgres.createDatabase(name, TEMPLATE);
      await once(made, (sql) => sql.unsafe(clockSql(clock)));
      return made;
    },
    drop: postgres.dropDatabase,
    close: postgres.close,
  };
}

function onWorldClock(sql: string): string {
  return sql.replace(/\b(?:pg_catalog\.)?(?:clock_timestamp|now)\(\)/g, "public.bench_clock()");
}

function clockSql({ scale, startMs }: WorldClock): string {
  const start = `timestamptz '${new Date(startMs).toISOString()}'`;
  return `
    create or replace function public.bench_clock() returns timestamptz language sql volatile
    return (${start} + (pg_catalog.clock_timestamp() - ${start}) * ${scale});
    grant execute on function public.bench_clock() to public;`;
}
