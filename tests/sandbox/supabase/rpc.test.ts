import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LocalApi, startLocalApi } from "@/tests/sandbox/supabase/local-api";

const SETUP = `
  create function kind(request jsonb) returns text language sql as $$ select jsonb_typeof(request) $$;
  create function echo(request jsonb) returns jsonb language sql as $$ select request $$;
  create function body_of(jsonb) returns jsonb language sql as $$ select $1 $$;
  create function add(a numeric, b bigint default 2) returns numeric language sql as $$ select a + b $$;
  create function numbers(upto int) returns setof int language sql as $$ select generate_series(1, upto) $$;
  create function one_column(upto int) returns table (n int) language sql as $$ select generate_series(1, upto) $$;
  create function nothing() returns void language sql as $$ select $$;
  create function whoami() returns jsonb language sql as $$
    select jsonb_build_object('user', current_user, 'role', auth.role(), 'limit', current_setting('statement_timeout')) $$;
  create function refuse(code text) returns int language plpgsql as $$
    begin raise exception 'no' using errcode = code, detail = 'why', hint = 'how'; end $$;
  create function instant() returns timestamptz language sql as $$ select timestamptz '2026-11-29 20:41:47.120+00' $$;
  create table counted (id int primary key);
  create function count_once(id int) returns boolean language plpgsql as $$
    begin insert into counted values (id); return true; exception when unique_violation then return false; end $$;
`;

let local: LocalApi;
beforeAll(async () => {
  local = await startLocalApi(SETUP);
});
afterAll(() => local.close());

const call = (name: string, args: object = {}) => local.service.rpc(name, args);

describe("an argument", () => {
  it.each([
    ["object", { a: [1, { b: null }] }],
    ["array", [1, "zwei", { drei: 3 }]],
    ["string", "text"],
    ["number", 1.5],
    ["boolean", false],
  ])("of JSON type %s arrives as that type and comes back unchanged", async (kind, request) => {
    expect(await call("kind", { request })).toMatchObject({ status: 200, data: kind });
    expect((await call("echo", { request })).data).toEqual(request);
  });

  it("arrives as its JSON type from a browser's key too, through lite", async () => {
    expect((await local.browser().rpc("kind", { request: { a: 1 } })).data).toBe("object");
    expect((await local.browser().rpc("kind", { request: [1] })).data).toBe("array");
  });

  it("keeps every digit on its way in and out", async () => {
    const sum = await local.raw("/rest/v1/rpc/add", '{"a": 9007199254740993.10, "b": 9007199254740993}');
    expect(sum).toEqual({ status: 200, text: "18014398509481986.10" });
  });

  it("may be left out where it has a default", async () => {
    expect((await call("add", { a: 1 })).data).toBe(3);
  });

  it("without a name is the whole body", async () => {
    expect((await call("body_of", { a: 1 })).data).toEqual({ a: 1 });
  });

  it("of more than a megabyte passes", async () => {
    const request = { text: "x".repeat(1_200_000) };
    expect((await call("echo", { request })).data).toEqual(request);
  });
});

describe("a result", () => {
  it("is a list for a set, objects for named columns, at most 1000 rows", async () => {
    expect((await call("numbers", { upto: 3 })).data).toEqual([1, 2, 3]);
    expect((await call("one_column", { upto: 2 })).data).toEqual([{ n: 1 }, { n: 2 }]);
    expect((await call("numbers", { upto: 1500 })).data).toHaveLength(1000);
    expect((await call("numbers", { upto: 0 })).data).toEqual([]);
  });

  it("is empty for a function that returns nothing", async () => {
    expect(await call("nothing")).toMatchObject({ status: 204, data: null });
  });

  it("writes a time in ISO 8601", async () => {
    expect((await call("instant")).data).toBe("2026-11-29T20:41:47.12+00:00");
  });
});

describe("a call", () => {
  it("with the secret key runs as the service role, under its time limit", async () => {
    expect((await call("whoami")).data).toEqual({ user: "service_role", role: "service_role", limit: "8s" });
  });

  it("with another key, or none, does not", async () => {
    expect((await local.browser().rpc("whoami")).data).toMatchObject({ user: "anon" });
    const keyless = await fetch(`${local.api.url}/rest/v1/rpc/whoami`, { method: "POST", body: "{}" });
    expect(keyless.status).toBe(401);
    const wrong = await fetch(`${local.api.url}/rest/v1/rpc/whoami`, {
      method: "POST",
      headers: { apikey: "sb_secret_x" },
    });
    expect(wrong.status).toBe(401);
  });

  it("of an unknown function, or with an unknown argument, is 404", async () => {
    expect(await call("unknown")).toMatchObject({ status: 404, error: { code: "PGRST202" } });
    expect(await call("add", { a: 1, x: 1 })).toMatchObject({ status: 404, error: { code: "PGRST202" } });
  });

  it("that is no JSON is 400", async () => {
    expect(await local.raw("/rest/v1/rpc/echo", "{")).toMatchObject({ status: 400 });
  });

  it("finds a function that was made anew with other arguments", async () => {
    await local.sql.unsafe("create function renewed(a int) returns int language sql as $$ select a $$");
    expect((await call("renewed", { a: 1 })).data).toBe(1);
    await local.sql.unsafe(`drop function renewed; 
      create function renewed(a text) returns text language sql as $$ select a $$`);
    await call("renewed", { a: 1 });
    expect((await call("renewed", { a: "text" })).data).toBe("text");
  });

  it("holds out among a hundred others", async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => call("count_once", { id: i % 100 })));
    expect(answers.filter(({ data }) => data === true)).toHaveLength(100);
    expect(answers.filter(({ data }) => data === false)).toHaveLength(100);
  });
});

describe("an error in Postgres", () => {
  it.each([
    ["P0001", 400],
    ["23514", 400],
    ["22P02", 400],
    ["23505", 409],
    ["23503", 409],
    ["42501", 403],
    ["40001", 500],
    ["40P01", 500],
    ["55P03", 500],
    ["57014", 500],
    ["53300", 503],
    ["PT418", 418],
  ])("of SQLSTATE %s is answered with %i and its text", async (code, status) => {
    const answer = await call("refuse", { code });
    expect(answer.status).toBe(status);
    expect(answer.error).toMatchObject({ code, message: "no", details: "why", hint: "how" });
  });
});
