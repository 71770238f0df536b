import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MIGRATIONS_DIR } from "@/sandbox/postgres/apply-migrations";
import { untilSomebodyWaits } from "@/tests/integration/sql/synced-data-rows";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

const NAME = "snaptrade_webhook_events_queued_webhook_id_unique";
const MIGRATION = path.join(MIGRATIONS_DIR, "20260501_add_snaptrade_webhook_processed_unique_index.sql");
const MAINTENANCE = path.join(MIGRATIONS_DIR, "../maintenance/build-processed-unique-index-concurrently.sql");

let database: LocalDatabase;
let migration: string;

/** As the table was before the migration: rows of an older release, more than one processed row an id among them. */
beforeEach(async () => {
  database = await freshDatabase();
  migration = await readFile(MIGRATION, "utf8");
  const { sql } = database;
  await sql.unsafe(`drop index public.${NAME}`);
  await sql`
    insert into public.snaptrade_webhook_events (webhook_id, processed, received_at, payload) values
      ('twice', true, '2026-01-02', '{"copy": 2}'), ('twice', true, '2026-01-01', '{"copy": 1}'),
      ('twice', true, '2026-01-03', '{"copy": 3}'), ('twice', false, '2025-12-31', '{"copy": 0}'),
      ('same time', true, '2026-01-01', null), ('same time', true, '2026-01-01', null),
      ('once', true, '2026-01-01', null), ('never', false, '2026-01-01', null), ('never', false, '2026-01-01', null),
      ('error_x', true, '2026-01-01', null), ('error_x', true, '2026-01-01', null),
      (null, true, '2026-01-01', null), (null, true, '2026-01-01', null)`;
});
afterEach(() => database.close());

const migrate = () => database.sql.begin((tx) => tx.unsafe(migration));

async function index() {
  const [found] = await database.sql`
    select i.indisvalid as valid, i.indisunique as unique, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i where i.indexrelid = to_regclass(${`public.${NAME}`})`;
  return found && { ...found };
}

const EXPECTED = {
  valid: true,
  unique: true,
  definition:
    `CREATE UNIQUE INDEX ${NAME} ON public.snaptrade_webhook_events USING btree (webhook_id) ` +
    "WHERE ((webhook_id IS NOT NULL) AND (webhook_id !~ '^error_'::text) AND (processed IS TRUE))",
};

/** Rows as "webhook id: processed, payload", in the order in which they were written. */
async function events(): Promise<string[]> {
  const rows = await database.sql`
    select webhook_id, processed, payload ->> 'copy' as copy from public.snaptrade_webhook_events order by id`;
  return rows.map((row) => `${row.webhook_id}: ${row.processed}${row.copy === null ? "" : ` ${row.copy}`}`);
}

const SETTLED = [
  ...["twice: false 2", "twice: true 1", "twice: false 3", "twice: false 0"],
  ...["same time: true", "same time: false", "once: true", "never: false", "never: false"],
  ...["error_x: true", "error_x: true", "null: true", "null: true"],
];

const insertProcessed = (webhookId: string) =>
  database.sql`insert into public.snaptrade_webhook_events (webhook_id, processed) values (${webhookId}, true)`;

describe("the migration", () => {
  // B76
  it("leaves the earliest processed row of an id processed, deletes nothing, and builds the index", async () => {
    await migrate();
    expect(await events()).toEqual(SETTLED);
    expect(await index()).toEqual(EXPECTED);
  });

  it("can be run again and changes nothing", async () => {
    await migrate();
    const state = () => database.sql`
      select ctid::text, xmin::text, id, to_regclass(${`public.${NAME}`})::oid as index from public.snaptrade_webhook_events`;
    const before = await state();
    await migrate();
    expect(await state()).toEqual(before);
  });

  it("replaces an index that a failed concurrent build left behind", async () => {
    await expect(
      database.sql.unsafe(
        `create unique index concurrently ${NAME} on public.snaptrade_webhook_events (webhook_id) where processed is true`,
      ),
    ).rejects.toMatchObject({ code: "23505" });
    expect(await index()).toMatchObject({ valid: false });
    await migrate();
    expect(await index()).toEqual(EXPECTED);
  });

  it("waits for a duplicate that is being written, and settles it too", async () => {
    const writer = await database.sql.reserve();
    await writer`begin`;
    await writer`insert into public.snaptrade_webhook_events (webhook_id, processed) values ('once', true)`;
    const migrated = migrate();
    await untilSomebodyWaits(database.sql);
    await writer`commit`;
    writer.release();
    await migrated;
    expect(await events()).toEqual([...SETTLED, "once: false"]);
    expect(await index()).toEqual(EXPECTED);
  });

  it("keeps writers out until the index stands, so that a duplicate cannot slip in; readers go on", async () => {
    const migrator = await database.sql.reserve();
    await migrator`begin`;
    await migrator.unsafe(migration);
    const written = insertProcessed("once").then(
      () => "written",
      (error: unknown) => error,
    );
    await untilSomebodyWaits(database.sql);
    expect(await events()).toHaveLength(SETTLED.length);
    await migrator`commit`;
    migrator.release();
    expect(await written).toMatchObject({ code: "23505" });
  });
});

describe("the index (I2)", () => {
  beforeEach(migrate);

  it("refuses a second processed row of an id, by the exact text of the id", async () => {
    await expect(insertProcessed("once")).rejects.toMatchObject({ code: "23505", constraint_name: NAME });
    await insertProcessed("Once");
    await insertProcessed(" once");
  });

  it("lets in rows that are not processed, ids that begin with error_, and rows without an id", async () => {
    await database.sql`insert into public.snaptrade_webhook_events (webhook_id, processed) values ('once', false), (null, true)`;
    await insertProcessed("error_x");
    await expect(insertProcessed("an error_x")).resolves.toBeDefined();
    await expect(insertProcessed("an error_x")).rejects.toMatchObject({ code: "23505" });
  });

  // B68
  it("can be named by an insert that repeats its predicate", async () => {
    const insert = () => database.sql`
      insert into public.snaptrade_webhook_events (webhook_id, processed) values ('new', true)
      on conflict (webhook_id) where webhook_id is not null and webhook_id !~ '^error_' and processed is true do nothing
      returning id`;
    expect(await insert()).toHaveLength(1);
    expect(await insert()).toHaveLength(0);
  });
});

describe("the concurrent build for a maintenance window (B75)", () => {
  /** As psql does: each statement by itself, none in a transaction. */
  async function runSteps(): Promise<Rows> {
    const text = await readFile(MAINTENANCE, "utf8");
    const steps = text.split(/^(?=-- step \d)/m).slice(1);
    const session = await database.sql.reserve();
    let rows: Rows = [];
    try {
      for (const step of steps) rows = [...(await session.unsafe(step))];
    } finally {
      await session.unsafe("reset all");
      session.release();
    }
    return rows;
  }
  type Rows = Record<string, unknown>[];

  it("settles by the same rule and ends in the same index, which the migration then finds", async () => {
    const [check] = await runSteps();
    expect(check).toMatchObject({ index: NAME, valid: true });
    expect(await events()).toEqual(SETTLED);
    expect(await index()).toEqual(EXPECTED);
    const [before] = await database.sql`select to_regclass(${`public.${NAME}`})::oid as oid`;
    await migrate();
    expect((await database.sql`select to_regclass(${`public.${NAME}`})::oid as oid`)[0]).toEqual(before);
  });

  it("can be run again after a build that failed", async () => {
    await database.sql
      .unsafe(
        `create unique index concurrently ${NAME} on public.snaptrade_webhook_events (webhook_id) where processed is true`,
      )
      .catch(() => undefined);
    expect(await index()).toMatchObject({ valid: false });
    await runSteps();
    expect(await index()).toEqual(EXPECTED);
    await runSteps();
    expect(await index()).toEqual(EXPECTED);
  });

  it("settles many duplicates batch by batch", async () => {
    await database.sql`
      insert into public.snaptrade_webhook_events (webhook_id, processed)
      select 'many-' || i % 700, true from generate_series(1, 2800) i`;
    await runSteps();
    const [many] = await database.sql`
      select count(*)::int from public.snaptrade_webhook_events where webhook_id like 'many-%' and processed`;
    expect(many?.count).toBe(700);
  });
});

// B75
it("no migration builds an index concurrently, which a transaction refuses, and none leaves an index that is not valid", async () => {
  const files = (await readdir(MIGRATIONS_DIR)).filter((name) => name.endsWith(".sql"));
  expect(files.length).toBeGreaterThan(10);
  for (const name of files) {
    const statements = (await readFile(path.join(MIGRATIONS_DIR, name), "utf8")).replace(/--.*/g, "");
    expect(statements, name).not.toMatch(/concurrently/i);
  }
  const fresh = await freshDatabase();
  const invalid =
    await fresh.sql`select indexrelid::regclass::text from pg_index where not indisvalid or not indisready`;
  await fresh.close();
  expect(invalid).toEqual([]);
});
