import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { once } from "@/sandbox/postgres/databases";
import { type Postgres, startPostgres } from "@/sandbox/postgres/start-postgres";
import { installSupabaseBase } from "@/sandbox/supabase/install-base";
import { dumpSchema } from "@/tests/schema/dump-schema";
import { diffLines } from "@/tests/schema/line-diff";

const BEFORE = `
  create table things (id int primary key, name text default 'x', state text);
  alter table things enable row level security;
  revoke all on things from anon, authenticated;
  create unique index one_open on things (name) where state = 'open';
  create policy own on things for select to authenticated using (true);
  create function f(a int) returns int language sql security invoker set search_path = '' as $$ select a $$;
  revoke execute on function f from public, anon, authenticated;
  create view v with (security_invoker = on) as select id from things;
`;

let server: Postgres;
let before: string;
beforeAll(async () => {
  server = await startPostgres();
  const url = await server.createDatabase("before");
  await installSupabaseBase(url);
  before = await once(url, async (sql) => {
    await sql.unsafe(BEFORE);
    return dumpSchema(sql);
  });
});
afterAll(() => server.close());

async function differenceAfter(change: string): Promise<string[]> {
  const url = await server.createDatabase("changed", "before");
  const after = await once(url, async (sql) => {
    await sql.unsafe(change);
    return dumpSchema(sql);
  });
  await server.dropDatabase("changed");
  return diffLines(before, after);
}

describe("the schema dump", () => {
  it("is the same for the same schema, whatever the rows", async () => {
    expect(await differenceAfter("insert into things values (1)")).toEqual([]);
  });

  it.each([
    ["a default", "alter table things alter name set default 'y'", "+ things.name text default 'y'::text"],
    ["a column", "alter table things add n int not null", "+ things.n integer not null"],
    [
      "an index's condition",
      "drop index one_open; create unique index one_open on things (name)",
      "+ CREATE UNIQUE INDEX one_open ON public.things USING btree (name)",
    ],
    ["row-level security", "alter table things disable row level security", "+ things OFF"],
    [
      "a policy",
      "drop policy own on things",
      "- things own permissive for select to authenticated using (true) with check ()",
    ],
    ["a table's grants", "grant select on things to anon", /^\+ things anon=select service_role=/],
    [
      "a function's grants",
      "grant execute on function f to authenticated",
      "+ f(integer) authenticated=execute service_role=execute",
    ],
    ["a function's security", "alter function f security definer", "+  SECURITY DEFINER"],
    ["a function's settings", "alter function f reset search_path", "-  SET search_path TO ''"],
    ["a view's security", "alter view v set (security_invoker = off)", "+ v {security_invoker=off}"],
    [
      "default privileges",
      "alter default privileges in schema public revoke all on tables from anon",
      /^- public tables anon=/,
    ],
    ["a schema", "create schema private", "+ private nobody"],
  ])("shows a change of %s", async (_, change, line) => {
    const difference = await differenceAfter(change);
    expect(difference).toContainEqual(typeof line === "string" ? line : expect.stringMatching(line));
  });
});

describe("the difference of two texts", () => {
  it("lists what only one has, in order", () => {
    expect(diffLines("a\nb\nc\nd", "a\nx\nc\nd\ne")).toEqual(["- b", "+ x", "+ e"]);
    expect(diffLines("a\nb", "a\nb")).toEqual([]);
    expect(diffLines("", "a\n")).toEqual(["+ a"]);
  });
});
