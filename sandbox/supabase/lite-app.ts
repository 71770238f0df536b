import type { App } from "@supabase/lite";
import type { PostgresConnection } from "@supabase/lite/postgres";
import type { PostgresType } from "postgres";
import { markNumber } from "@/sandbox/supabase/exact-numbers";

export type LiteOptions = { databaseUrl: string; secretKey: string; publishableKey: string; jwtSecret: string };
export type Lite = { app: App; connection: PostgresConnection };

/** PostgREST's default `max-rows` on Supabase. */
export const MAX_ROWS = 1000;
/** The time limit of Supabase's API roles: `alter role authenticator set statement_timeout = '8s'`. */
export const STATEMENT_TIMEOUT_MS = 8000;

/**
 * `@supabase/lite` in process over our Postgres, with its deviations from PostgREST cured where they can be by
 * configuration. Imported on first use: it takes half a second and 50 MB.
 */
export async function createLite(options: LiteOptions): Promise<Lite> {
  const { App, createPostgresConnection } = await importLite();
  const connection = createPostgresConnection({
    url: options.databaseUrl,
    postgresOptions: {
      max: 10,
      onnotice: () => undefined,
      connection: { statement_timeout: STATEMENT_TIMEOUT_MS },
      types: TYPES,
    },
  });
  // By default lite grants everything on every table to anon and authenticated as soon as one table has row-level
  // security, which would undo what the migrations revoke. "active" is the state after that: roles are switched.
  Reflect.set(connection, "rlsState", "active");
  const app = new App({
    connection,
    auth: {
      enabled: true,
      publishable_key: options.publishableKey,
      secret_key: options.secretKey,
      jwt_secret: options.jwtSecret,
    },
    api: { max_rows: MAX_ROWS, schemas: ["public"] },
    options: { server: { admin: false } }, // otherwise a request without a key, from this machine, is the service role
  });
  await app.init();
  return { app, connection };
}

/** The `auth` schema of lite (`auth.users`, `auth.uid()` ...) as SQL. */
export async function liteBaseSchema(): Promise<string> {
  const unused = { secretKey: "sb_secret_none", publishableKey: "sb_publishable_none", jwtSecret: "-".repeat(32) };
  const { connection } = await createLite({ databaseUrl: "postgres://127.0.0.1/none", ...unused });
  return connection.config.baseSchema ?? "";
}

/** The driver replaces `process.emitWarning` by one that throws on warnings that are Error objects: put ours back. */
async function importLite() {
  const { emitWarning } = process;
  const [{ App }, { createPostgresConnection }] = await Promise.all([
    import("@supabase/lite"),
    import("@supabase/lite/postgres"),
  ]);
  process.emitWarning = emitWarning;
  return { App, createPostgresConnection };
}

const asIs = (value: string) => value;
const isoTime = (text: string) => text.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00");
/** lite hands JSON over as text, which the driver would encode once more: a JSON string that holds JSON. */
const jsonText = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

const TYPES: Record<string, PostgresType> = {
  json: { to: 114, from: [114, 3802], serialize: jsonText, parse: JSON.parse },
  jsonb: { to: 3802, from: [3802], serialize: jsonText, parse: JSON.parse },
  timestamp: { to: 1114, from: [1114], serialize: asIs, parse: isoTime },
  timestamptz: { to: 1184, from: [1184], serialize: asIs, parse: isoTime },
  bigint: { to: 20, from: [20], serialize: String, parse: markNumber },
  numeric: { to: 1700, from: [1700], serialize: String, parse: markNumber },
};
