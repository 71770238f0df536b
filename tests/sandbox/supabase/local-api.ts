import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import postgres from "postgres";
import { startPostgres } from "@/sandbox/postgres/start-postgres";
import { installSupabaseBase } from "@/sandbox/supabase/install-base";
import { type Supabase, startSupabase } from "@/sandbox/supabase/start-supabase";
import { NoSocket } from "@/tests/sandbox/supabase/no-socket";

export type LocalApi = {
  api: Supabase;
  /** As the owner of the database. */
  sql: postgres.Sql;
  service: SupabaseClient;
  /** A client with the publishable key, signed in if a token is given. */
  browser(token?: string): SupabaseClient;
  /** A call with the secret key; the answer's text as it came. */
  raw(path: string, body?: unknown): Promise<{ status: number; text: string }>;
  close(): Promise<void>;
};

/** The API over a server and a database of its own, with this SQL run in it: independent of the project's schema. */
export async function startLocalApi(setup: string): Promise<LocalApi> {
  const server = await startPostgres();
  const databaseUrl = await server.createDatabase("api");
  await installSupabaseBase(databaseUrl);
  const sql = postgres(databaseUrl, { max: 2, onnotice: () => undefined });
  await sql.unsafe(setup);
  const api = await startSupabase({ databaseUrl });
  const client = (key: string, token?: string) =>
    createClient(api.url, key, {
      auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
      realtime: { transport: NoSocket },
      ...(token === undefined ? {} : { global: { headers: { Authorization: `Bearer ${token}` } } }),
    });
  return {
    api,
    sql,
    service: client(api.secretKey),
    browser: (token) => client(api.publishableKey, token),
    raw: async (path, body) => {
      const response = await fetch(api.url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { apikey: api.secretKey, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text() };
    },
    close: async () => {
      await api.close();
      await sql.end();
      await server.close();
    },
  };
}
