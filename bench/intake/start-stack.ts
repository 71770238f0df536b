import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { applyMigrations } from "@/sandbox/postgres/apply-migrations";
import { startPostgres } from "@/sandbox/postgres/start-postgres";
import { startQStash } from "@/sandbox/qstash/start-qstash";
import { startRedis } from "@/sandbox/redis/start-redis";
import { startRedisFront } from "@/sandbox/redis/start-redis-front";
import { serviceEnv } from "@/sandbox/service-env";
import type { Closers } from "@/sandbox/stack/closers";
import { SNAPTRADE_KEYS } from "@/sandbox/stack/start-stack";
import { installSupabaseBase } from "@/sandbox/supabase/install-base";
import { startSupabase } from "@/sandbox/supabase/start-supabase";

const QSTASH_KEYS = { token: "bench-token", currentSigningKey: "sig_bench_current", nextSigningKey: "sig_bench_next" };
const STORED_LIMIT_MS = 60_000;

/**
 * Everything that intake needs and nothing that works: Postgres with so many accounts, Redis, and a QStash that takes every
 * message and delivers none.
 */
export async function startIntakeStack(accounts: number, closers: Closers) {
  const redisServer = await startRedis();
  closers.add("Redis", redisServer.close);
  if (redisServer.kind !== "server") throw new Error("The bench needs redis-server or valkey-server on PATH.");
  const database = await startPostgres();
  closers.add("Postgres", database.close);
  await installSupabaseBase(database.url);
  await applyMigrations(database.url);
  const sql = postgres(database.url, { max: 2, onnotice: () => undefined });
  closers.add("the bench's connection", () => sql.end({ timeout: 1 }));
  await seedAccounts(sql, accounts);

  const supabase = await startSupabase({ databaseUrl: database.url });
  closers.add("Supabase API", supabase.close);
  const redis = await startRedisFront({ redisUrl: redisServer.url });
  closers.add("Redis front", redis.close);
  const qstash = await startQStash({ ...QSTASH_KEYS, port: 0 });
  closers.add("QStash", qstash.close);

  async function storedEvents(): Promise<number> {
    const [row] = await sql<{ count: number }[]>`select count(*)::int from snaptrade_webhook_events`;
    return row?.count ?? 0;
  }

  return {
    accounts,
    env: (port: number) =>
      serviceEnv({
        appUrl: `http://127.0.0.1:${port}`,
        cronSecret: "bench-cron-secret",
        secretsKey: randomBytes(32).toString("base64"),
        supabase,
        redis,
        qstash: { url: qstash.url, ...QSTASH_KEYS },
        // Nobody is called: nothing is delivered.
        snaptrade: { url: "http://127.0.0.1:9", ...SNAPTRADE_KEYS, rateLimitPerMinute: 250 },
      }),
    storedEvents,
    /**
     * What a coalesced event does after its answer belongs to it: waits until so many events are stored.
     * @throws when they are not after a minute
     */
    async untilStored(wanted: number): Promise<void> {
      const until = performance.now() + STORED_LIMIT_MS;
      while ((await storedEvents()) < wanted) {
        if (performance.now() > until) throw new Error("The work after the answers did not end.");
        await sleep(5);
      }
    },
    /** No event was ever seen and no job is queued: every round begins so. */
    async forget(): Promise<void> {
      await sql`truncate snaptrade_webhook_events, snaptrade_sync_jobs`;
      await redis.flush();
      qstash.reset();
      qstash.faults.set({ publish: { acknowledgeAndLose: true } });
    },
  };
}

export type IntakeStack = Awaited<ReturnType<typeof startIntakeStack>>;

/** Each with a user and a connection of its own. */
async function seedAccounts(sql: postgres.Sql, accounts: number): Promise<void> {
  await sql`insert into snaptrade_users (user_id) select 'user-' || i from generate_series(0, ${accounts - 1}::int) i`;
  await sql`insert into snaptrade_connections (connection_id, user_id)
    select 'conn-' || i, 'user-' || i from generate_series(0, ${accounts - 1}::int) i`;
  await sql`insert into snaptrade_accounts (account_id, connection_id, user_id)
    select 'acct-' || i, 'conn-' || i, 'user-' || i from generate_series(0, ${accounts - 1}::int) i`;
  await sql`analyze`;
}
