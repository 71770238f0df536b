import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { applyMigrations, MIGRATIONS_DIR } from "@/sandbox/postgres/apply-migrations";
import { once } from "@/sandbox/postgres/databases";
import { startPostgres } from "@/sandbox/postgres/start-postgres";
import { installSupabaseBase } from "@/sandbox/supabase/install-base";
import { dumpSchema } from "@/tests/schema/dump-schema";
import { diffLines } from "@/tests/schema/line-diff";

const FILE = path.join(MIGRATIONS_DIR, "../schema.txt");
const HEADER =
  "# What the migrations add up to. Written by `npm run schema`, compared by `npm run check`; not edited by hand.\n\n";

/** Compares the committed schema with what the migrations make of an empty database; `--write` renews it. */
async function main(): Promise<number> {
  const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
  const schema = HEADER + (await migratedSchema());
  if (values.write) {
    await writeFile(FILE, schema);
    return 0;
  }
  const committed = await readFile(FILE, "utf8").catch(() => "");
  const difference = diffLines(committed, schema);
  if (difference.length === 0) return 0;
  process.stdout.write(`${difference.join("\n")}\n`);
  process.stderr.write(
    "supabase/schema.txt (-) is not what the migrations make (+). If they are right: npm run schema\n",
  );
  return 1;
}

async function migratedSchema(): Promise<string> {
  const server = await startPostgres();
  try {
    const url = await server.createDatabase("schema_check");
    await installSupabaseBase(url);
    await applyMigrations(url);
    return await once(url, dumpSchema);
  } finally {
    await server.close();
  }
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
