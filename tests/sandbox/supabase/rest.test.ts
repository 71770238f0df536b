import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type LocalApi, startLocalApi } from "@/tests/sandbox/supabase/local-api";

const ALICE = "11111111-1111-4111-8111-111111111111";
const BOB = "22222222-2222-4222-8222-222222222222";

const SETUP = `
  create table notes (id text primary key, owner uuid, amount numeric, big bigint, at timestamptz, data jsonb,
    check (amount is null or amount < 1000));
  alter table notes enable row level security;
  revoke all on notes from anon, authenticated;
  grant select on notes to authenticated;
  create policy own on notes for select to authenticated using (owner = auth.uid());
  create table hidden (id int primary key);
  alter table hidden enable row level security;
  revoke all on hidden from anon, authenticated;
  create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
  create trigger refuse before delete on notes for each row execute function refuse();
  create table many (n int primary key);
  insert into many select generate_series(1, 1500);
  insert into notes values
    ('12.50', '${ALICE}', 12.50, 9007199254740993, '2026-11-29 20:41:47.5+00', '{"a": [1, {"b": null}]}'),
    ('007', '${BOB}', -0.10, 1, null, '[1, 2]'),
    ('plain', null, null, null, null, null);
`;

let local: LocalApi;
beforeAll(async () => {
  local = await startLocalApi(SETUP);
});
afterEach(() => local.api.clearFaults());
afterAll(() => local.close());

describe("a row", () => {
  it("is answered as PostgREST writes it: every digit, ISO times, JSON as JSON", async () => {
    const { text } = await local.raw("/rest/v1/notes?select=amount,big,at,data&id=eq.12.50");
    expect(text).toBe(
      '[{"amount":12.50,"big":9007199254740993,"at":"2026-11-29T20:41:47.5+00:00","data":{"a":[1,{"b":null}]}}]',
    );
  });

  it("takes a JSON object and a JSON array as such", async () => {
    await local.service.from("notes").insert([
      { id: "object", data: { a: 1 } },
      { id: "array", data: [1] },
    ]);
    const kinds =
      await local.sql`select jsonb_typeof(data) as kind from notes where id in ('object', 'array') order by id`;
    expect(kinds.map(({ kind }) => kind)).toEqual(["array", "object"]);
  });
});

describe("a filter on text", () => {
  it.each([["12.50"], ["007"], ["plain"]])("finds %s, whether it looks like a number or not", async (id) => {
    expect((await local.service.from("notes").select("id").eq("id", id)).data).toEqual([{ id }]);
    expect((await local.service.from("notes").select("id").in("id", [id, "none"])).data).toEqual([{ id }]);
  });
});

it("answers at most 1000 rows", async () => {
  expect((await local.service.from("many").select()).data).toHaveLength(1000);
});

describe("row-level security", () => {
  it("shows a signed-in user own rows only", async () => {
    const alice = local.browser(await local.api.userToken(ALICE));
    expect((await alice.from("notes").select("id")).data).toEqual([{ id: "12.50" }]);
  });

  it("refuses with 403 what is not granted, and does not grant it by itself", async () => {
    const alice = local.browser(await local.api.userToken(ALICE));
    expect(await alice.from("hidden").select()).toMatchObject({ status: 403, error: { code: "42501" } });
    expect(await alice.from("notes").insert({ id: "x" })).toMatchObject({ status: 403, error: { code: "42501" } });
  });

  it("shows nothing to the publishable key alone, nor to a forged token, nor without a key", async () => {
    expect(await local.browser().from("notes").select()).toMatchObject({ status: 401 });
    const forged = `${(await local.api.userToken(ALICE)).split(".").slice(0, 2).join(".")}.AAAA`;
    expect(await local.browser(forged).from("notes").select()).toMatchObject({ status: 401 });
    expect((await fetch(`${local.api.url}/rest/v1/notes`)).status).toBe(401);
  });
});

describe("an error", () => {
  it("keeps its SQLSTATE and gets PostgREST's status", async () => {
    const notes = () => local.service.from("notes");
    expect(await notes().insert({ id: "y", amount: 5000 })).toMatchObject({ status: 400, error: { code: "23514" } });
    expect(await notes().insert({ id: "plain" })).toMatchObject({ status: 409, error: { code: "23505" } });
    expect(await notes().delete().eq("id", "plain")).toMatchObject({
      status: 400,
      error: { code: "P0001", message: "refused" },
    });
  });
});

describe("the control", () => {
  it("counts what came, by path", async () => {
    const before = local.api.requests();
    await local.service.from("many").select().limit(1);
    const state = await (await fetch(`${local.api.url}/_sim/state`)).json();
    expect(state.requests).toBe(before + 1);
    expect(state.byPath["/rest/v1/many"]).toBeGreaterThan(0);
  });

  it("can take the database away and give it back", async () => {
    local.api.fault({ outage: true });
    await expect(local.raw("/rest/v1/many")).rejects.toThrow("fetch failed");
    local.api.clearFaults();
    expect((await local.raw("/rest/v1/many?limit=1")).status).toBe(200);
  });
});
