import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { type RunningQStash, startQStash } from "@/sandbox/qstash/start-qstash";
import { type RedisFront, startRedisFront } from "@/sandbox/redis/start-redis-front";
import { serviceEnv } from "@/sandbox/service-env";
import { type RunningSnapTrade, startSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { type Supabase, startSupabase } from "@/sandbox/supabase/start-supabase";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";
import { askForRedis } from "@/tests/support/shared-services";

export type LocalStackOptions = {
  /** Starts the QStash emulator. */
  qstash?: boolean;
  /** Starts the SnapTrade simulator with so many seeded accounts. */
  snaptrade?: { accounts: number; rateLimitPerMinute?: number };
  /** A Redis of the caller's own, instead of the run's. */
  redisUrl?: string;
  /** Where the service under test listens; QStash delivers there. */
  appUrl?: string;
};

/** The parts that were not asked for are undefined, and so are they in the type. */
export type LocalStack<O extends LocalStackOptions = LocalStackOptions> = {
  database: LocalDatabase;
  supabase: Supabase;
  redis: RedisFront;
  qstash: O extends { qstash: true } ? RunningQStash : undefined;
  snaptrade: O extends { snaptrade: object } ? RunningSnapTrade : undefined;
  /** All that the service needs to run against this stack. */
  env: Record<string, string>;
  close(): Promise<void>;
};

/** Nothing listens there (RFC 863, discard): for parts that were not asked for. */
const NOWHERE = "http://127.0.0.1:9";

/**
 * A local stack for one test file, shared with nobody: a fresh database with its Supabase API, a Redis of its own, and
 * on demand QStash and SnapTrade. Close it in `afterAll`.
 */
export async function startLocalStack<const O extends LocalStackOptions>(options: O): Promise<LocalStack<O>>;
export async function startLocalStack(): Promise<LocalStack<object>>;
export async function startLocalStack(options: LocalStackOptions = {}): Promise<unknown> {
  const [database, redisPlace] = await Promise.all([freshDatabase(), askForRedis(inject("sharedServicesUrl"))]);
  const supabase = await startSupabase({ databaseUrl: database.url });
  const redis = await startRedisFront(
    options.redisUrl === undefined
      ? { redisUrl: redisPlace.redisUrl ?? undefined, database: redisPlace.database }
      : { redisUrl: options.redisUrl },
  );
  const qstashKeys = { token: "local-token", currentSigningKey: "sig_local_current", nextSigningKey: "sig_local_next" };
  const snaptradeKeys = { clientId: "SANDBOXCLIENT", consumerKey: "sandbox-consumer-key" };
  const rateLimitPerMinute = options.snaptrade?.rateLimitPerMinute ?? 250;
  const qstash = options.qstash ? await startQStash({ port: 0, ...qstashKeys }) : undefined;
  const snaptrade =
    options.snaptrade &&
    (await startSnapTrade({ port: 0, ...snaptradeKeys, accounts: options.snaptrade.accounts, rateLimitPerMinute }));
  return {
    database,
    supabase,
    redis,
    qstash,
    snaptrade,
    env: serviceEnv({
      appUrl: options.appUrl ?? NOWHERE,
      cronSecret: "local-cron-secret",
      secretsKey: randomBytes(32).toString("base64"),
      supabase,
      redis,
      qstash: { url: qstash?.url ?? NOWHERE, ...qstashKeys },
      snaptrade: { url: snaptrade?.url ?? NOWHERE, ...snaptradeKeys, rateLimitPerMinute },
    }),
    close: async () => {
      await redis.flush();
      await Promise.all([qstash?.close(), snaptrade?.close(), redis.close(), supabase.close()]);
      await database.close();
    },
  };
}
