import type { Sql } from "postgres";
import { z } from "zod";
import { MAX_ROWS } from "@/sandbox/supabase/lite-app";

/** A function of schema `public` as a call must know it. */
export type RpcFunction = {
  name: string;
  args: { name: string; type: string; optional: boolean }[];
  /** `records`: rows with named columns, even a single one; `rows`: whatever the function's type is. */
  returns: "records" | "rows" | "nothing" | "value";
};

const rowSchema = z.object({
  types: z.array(z.string()),
  names: z.array(z.string()).nullable(),
  modes: z.array(z.string()).nullable(),
  defaults: z.number(),
  variadic: z.boolean(),
  rows: z.boolean(),
  nothing: z.boolean(),
});

/** Looks a function up in the catalogue; undefined when there is none, several of the name, or one of a rare form. */
export async function findFunction(sql: Sql, name: string): Promise<RpcFunction | undefined> {
  const found = await sql`
    select to_json(p.proargnames) as names, to_json(p.proargmodes::text[]) as modes, to_json(array(
        select format_type(t, null) from unnest(p.proargtypes) with ordinality a (t, n) order by n)) as types,
      p.pronargdefaults::int as defaults,
      p.provariadic <> 0 as variadic, p.proretset as rows, p.prorettype = 'void'::regtype as nothing
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname = ${name} and p.prokind = 'f'
      and p.prorettype <> 'trigger'::regtype`;
  const [row, ...others] = z.array(rowSchema).parse(found);
  const hasOut = row?.modes?.some((mode) => /[obt]/.test(mode)) ?? false;
  if (row === undefined || others.length > 0 || row.variadic || (hasOut && !row.rows)) return undefined;
  const inputNames = (row.names ?? []).filter((_, i) => row.modes === null || /[ib]/.test(row.modes[i] ?? ""));
  const args = row.types.map((type, i) => ({
    name: inputNames[i] ?? "",
    type,
    optional: i >= row.types.length - row.defaults,
  }));
  return { name, args, returns: row.rows ? (hasOut ? "records" : "rows") : row.nothing ? "nothing" : "value" };
}

/**
 * The statement that calls a function with the named arguments of a JSON object, `$1`. As PostgREST does it: the
 * arguments are read out of the JSON by Postgres, and Postgres writes the JSON of the answer, so that no number,
 * time or JSON value goes through JavaScript. Undefined when the names do not fit the function.
 */
export function callStatement(fn: RpcFunction, given: string[]): string | undefined {
  const [only] = fn.args;
  if (fn.args.length === 1 && only?.name === "" && /^jsonb?$/.test(only.type)) {
    return select(fn, `$1::text::${only.type}`, "(select 1)"); // a single unnamed argument takes the whole body
  }
  const used = fn.args.filter((arg) => given.includes(arg.name));
  const missing = fn.args.some((arg) => !arg.optional && !given.includes(arg.name));
  if (missing || used.length !== given.length) return undefined;
  if (used.length === 0) return select(fn, "", "(select $1::text)");
  const columns = used.map((arg) => `${quote(arg.name)} ${arg.type}`).join(", ");
  const args = used.map((arg) => `${quote(arg.name)} => body.${quote(arg.name)}`).join(", ");
  return select(fn, args, `(select * from json_to_record($1::text::json) as named (${columns}))`);
}

function select(fn: RpcFunction, args: string, body: string): string {
  const call = `public.${quote(fn.name)}(${args})`;
  switch (fn.returns) {
    case "nothing":
      return `select ${call} as answer from ${body} as body`;
    case "value":
      return `select to_json(${call})::text as answer from ${body} as body`;
    case "rows":
      return selectRows(body, call);
    case "records":
      return selectRows(body, `(select * from ${call})`);
  }
}

function selectRows(body: string, source: string): string {
  return `select coalesce(json_agg(item), '[]')::text as answer
    from (select rpc_result as item from ${body} as body, lateral ${source} as rpc_result limit ${MAX_ROWS}) as items`;
}

function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
