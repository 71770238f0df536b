import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyMigrations } from "@/sandbox/postgres/apply-migrations";
import { once } from "@/sandbox/postgres/databases";
import { type Postgres, startPostgres } from "@/sandbox/postgres/start-postgres";

const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  );

const dataDirOf = (server: Postgres) =>
  once(server.adminUrl, async (sql) => String((await sql`show data_directory`)[0]?.data_directory));

describe("a started Postgres", () => {
  it("is not reachable after close, and its data are gone", async () => {
    const server = await startPostgres();
    const dataDir = await dataDirOf(server);
    expect(await exists(dataDir)).toBe(true);
    await server.close();
    await expect(once(server.url, (sql) => sql`select 1`)).rejects.toThrow("ECONNREFUSED");
    expect(await exists(path.dirname(dataDir))).toBe(false);
  });

  it("keeps the data of a folder that was given", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "snaptrade-data-"));
    const first = await startPostgres({ dataDir: folder });
    await once(first.url, (sql) => sql`create table kept (id int)`);
    await first.close();
    const second = await startPostgres({ dataDir: folder });
    expect(await once(second.url, (sql) => sql`select * from kept`)).toEqual([]);
    await second.close();
    await rm(folder, { recursive: true });
  });

  it("says what Postgres said when it cannot start", async () => {
    const server = await startPostgres();
    await expect(startPostgres({ port: server.port })).rejects.toThrow(
      /Postgres .* ended before it was ready.*Address already in use/s,
    );
    await server.close();
  });
});

describe("databases", () => {
  let server: Postgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  it("belong to role postgres, which is no superuser but passes row-level security", async () => {
    const url = await server.createDatabase("owned");
    const [role] = await once(
      url,
      (sql) => sql`
      select rolsuper, rolbypassrls, current_user = pg_get_userbyid(datdba) as owner
      from pg_roles, pg_database where rolname = current_user and datname = current_database()`,
    );
    expect(role).toEqual({ rolsuper: false, rolbypassrls: true, owner: true });
  });

  it("are copied from a template and dropped under a connected client", async () => {
    await once(await server.createDatabase("original"), (sql) => sql`create table copied (id int)`);
    const copy = postgres(await server.createDatabase("copy", "original"), { max: 1 });
    expect(await copy`select * from copied`).toEqual([]);
    await server.dropDatabase("copy");
    await expect(copy`select 1`).rejects.toThrow();
    await copy.end({ timeout: 0 });
    await server.dropDatabase("copy");
  });

  it("of a running server are made through its URL alone", async () => {
    const running = await startPostgres({ databaseUrl: server.adminUrl });
    const url = await running.createDatabase("elsewhere");
    expect(await once(url, (sql) => sql`select current_database() as name`)).toEqual([{ name: "elsewhere" }]);
    await running.close();
    expect(await once(url, (sql) => sql`select 1 as still`)).toEqual([{ still: 1 }]);
  });

  it("get each migration once, in order, and none of one that fails", async () => {
    const dir = await mkdtemp(path.join(tmpdir(), "snaptrade-migrations-"));
    const url = await server.createDatabase("migrated");
    await writeFile(
      path.join(dir, "20260102_second.sql"),
      "insert into t values (2); insert into t select count(*) from t;",
    );
    await writeFile(path.join(dir, "20260101_first.sql"), "create table t (n int); insert into t values (1);");
    expect(await applyMigrations(url, dir)).toEqual(["20260101_first.sql", "20260102_second.sql"]);
    expect(await applyMigrations(url, dir)).toEqual([]);

    await writeFile(path.join(dir, "20260103_bad.sql"), "insert into t values (3);\n\ninsert into nowhere values (1);");
    await expect(applyMigrations(url, dir)).rejects.toThrow(
      '20260103_bad.sql:3 failed: 42P01 relation "nowhere" does not exist',
    );
    expect(await once(url, (sql) => sql`select n from t order by n`)).toEqual([{ n: 1 }, { n: 2 }, { n: 2 }]);
    const versions = await once(
      url,
      (sql) => sql`select version from supabase_migrations.schema_migrations order by 1`,
    );
    expect(versions).toEqual([{ version: "20260101" }, { version: "20260102" }]);
    await rm(dir, { recursive: true });
  });

  it("get no migration from a folder with two of one version, or a name without one", async () => {
    const dir = await mkdtemp(path.join(tmpdir(), "snaptrade-migrations-"));
    await writeFile(path.join(dir, "1_a.sql"), "select 1");
    await writeFile(path.join(dir, "1_b.sql"), "select 1");
    await expect(applyMigrations(server.url, dir)).rejects.toThrow("1_a.sql and 1_b.sql have the same version 1");
    await rm(path.join(dir, "1_b.sql"));
    await writeFile(path.join(dir, "nameless.sql"), "select 1");
    await expect(applyMigrations(server.url, dir)).rejects.toThrow("nameless.sql");
    await rm(dir, { recursive: true });
  });
});
