import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { aesKeyList } from "@/lib/env-values";
import { makeOwnFolder } from "@/sandbox/own-folders";
import { applyMigrations } from "@/sandbox/postgres/apply-migrations";
import { startPostgres } from "@/sandbox/postgres/start-postgres";
import { type RunningQStash, startQStash } from "@/sandbox/qstash/start-qstash";
import { startRedis } from "@/sandbox/redis/start-redis";
import { startRedisFront } from "@/sandbox/redis/start-redis-front";
import { serviceEnv } from "@/sandbox/service-env";
import { type RunningSnapTrade, startSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { appEnv, appSettings } from "@/sandbox/stack/app-env";
import { ensureBuilt } from "@/sandbox/stack/build-app";
import type { Closers } from "@/sandbox/stack/closers";
import { callCron, runCrons } from "@/sandbox/stack/crons";
import { writeEnvFile } from "@/sandbox/stack/env-file";
import { assertUsable, type Ports } from "@/sandbox/stack/ports";
import { type AppMode, type RunningApp, runApp } from "@/sandbox/stack/run-app";
import { seedDatabase } from "@/sandbox/stack/seed-database";
import { installSupabaseBase } from "@/sandbox/supabase/install-base";
import { startSupabase } from "@/sandbox/supabase/start-supabase";

export type StackOptions = {
  ports: Ports;
  accounts: number;
  /** Told to the simulator and to the app. */
  rateLimitPerMinute: number;
  app: AppMode;
  /** Wins over everything that the sandbox would set for the app. */
  env: Record<string, string>;
  redisUrl?: string | undefined;
  databaseUrl?: string | undefined;
  /** The accounts exist and were never synced. */
  fresh: boolean;
  /** Calls the crons on their schedule; otherwise nobody does. */
  crons: boolean;
};

export type RunningStack = {
  app: RunningApp;
  supabase: { url: string; secretKey: string; publishableKey: string; databaseUrl: string };
  redis: { url: string; token: string };
  qstash: RunningQStash;
  qstashKeys: typeof QSTASH_KEYS;
  snaptrade: RunningSnapTrade;
  snaptradeKeys: typeof SNAPTRADE_KEYS;
  cronSecret: string;
  /** Whether the crons are called on their schedule. */
  crons: boolean;
  /** Where everything stands that the app prints. */
  appLog: string;
  /** The service's whole environment, for a shell. */
  envFile: string;
  callCron(path: string): Promise<number>;
};

const QSTASH_KEYS = {
  token: "sandbox-qstash-token",
  currentSigningKey: "sig_sandbox_current",
  nextSigningKey: "sig_sandbox_next",
};
export const SNAPTRADE_KEYS = { clientId: "SANDBOXCLIENT", consumerKey: "sandbox-consumer-key" };
const CRON_SECRET = "sandbox-cron-secret";
const WEBHOOK_PATH = "/api/snaptrade/webhook";

/**
 * Starts everything that the service needs, and the service: Postgres with the migrations and seeded accounts, the
 * Supabase API, Redis behind its front, QStash, SnapTrade, the app. Each part is handed to `closers` as soon as it runs,
 * so that a start can be given up at any moment. What is being done is told on stderr.
 * @throws when a port is taken, the build or a migration fails, or the app refuses its environment
 */
export async function startStack(options: StackOptions, closers: Closers): Promise<RunningStack> {
  const { ports, rateLimitPerMinute } = options;
  await assertUsable({
    ...ports,
    postgres: options.databaseUrl === undefined ? ports.postgres : undefined,
    redis: options.redisUrl === undefined ? ports.redis : undefined,
  });
  const appUrl = `http://127.0.0.1:${ports.app}`;
  const [secretsKey, secretsKeys] = secretsKeysOf(options.env);

  const snaptrade = await startSnapTrade({
    ...SNAPTRADE_KEYS,
    port: ports.snaptrade,
    accounts: options.accounts,
    rateLimitPerMinute,
    webhookUrl: `${appUrl}${WEBHOOK_PATH}`,
  });
  closers.add("SnapTrade", snaptrade.close);
  say(`SnapTrade: a simulator with ${options.accounts} accounts, ${snaptrade.url}`);
  const qstash = await startQStash({ ...QSTASH_KEYS, port: ports.qstash });
  closers.add("QStash", qstash.close);
  say(`QStash: an emulator, ${qstash.url}`);

  const [databaseUrl, redisUrl] = await allSettled([
    prepareDatabase(options, snaptrade, secretsKey, closers),
    prepareRedis(options, closers),
    options.app === "start" ? ensureBuilt(closers) : Promise.resolve(),
  ]);
  const supabase = await startSupabase({ port: ports.supabase, databaseUrl });
  closers.add("Supabase API", supabase.close);
  const redis = await startRedisFront({ port: ports.redisFront, redisUrl });
  closers.add("Redis front", redis.close);

  const env = serviceEnv({
    appUrl,
    cronSecret: CRON_SECRET,
    secretsKey: secretsKeys,
    supabase,
    redis,
    qstash: { url: qstash.url, ...QSTASH_KEYS },
    snaptrade: { url: snaptrade.url, ...SNAPTRADE_KEYS, rateLimitPerMinute },
  });
  const folder = await makeOwnFolder(tmpdir(), "sandbox");
  closers.add("the sandbox's folder", () => rm(folder, { recursive: true, force: true }));
  const appLog = path.join(folder, "app.log");
  const settings = appSettings(env, options.env);
  const envFile = path.join(folder, "app.env");
  await writeEnvFile(envFile, settings);
  stopIfClosing(closers);
  say(`The app: starting (next ${options.app}); its log: ${appLog}`);
  const app = await runApp({
    mode: options.app,
    port: ports.app,
    env: appEnv(options.app, settings),
    logFile: appLog,
    closers,
  });
  const cronSecret = options.env.CRON_SECRET ?? CRON_SECRET;
  const call = (cronPath: string) => callCron(appUrl, cronPath, cronSecret);
  if (options.crons) closers.add("crons", runCrons(call));
  return {
    app,
    supabase: {
      url: supabase.url,
      secretKey: supabase.secretKey,
      publishableKey: supabase.publishableKey,
      databaseUrl,
    },
    redis: { url: redis.url, token: redis.token },
    qstash,
    qstashKeys: QSTASH_KEYS,
    snaptrade,
    snaptradeKeys: SNAPTRADE_KEYS,
    cronSecret,
    crons: options.crons,
    appLog,
    envFile,
    callCron: call,
  };
}

/** The key that encrypts the seeded users' secrets, and the variable as the app gets it: a caller's own wins. */
function secretsKeysOf(given: Record<string, string>): readonly [key: Buffer, variable: string] {
  const variable = given.SNAPTRADE_SECRETS_KEY ?? randomBytes(32).toString("base64");
  const [key] = aesKeyList().safeParse(variable).data ?? [];
  if (key === undefined)
    throw new Error("--env SNAPTRADE_SECRETS_KEY: expected base64 of 32 bytes, several with commas.");
  return [key, variable];
}

/** A database with everything in it; its URL. */
async function prepareDatabase(
  options: StackOptions,
  snaptrade: RunningSnapTrade,
  secretsKey: Buffer,
  closers: Closers,
): Promise<string> {
  const { ports, databaseUrl, fresh } = options;
  say(`Postgres: ${databaseUrl === undefined ? "starting" : "the one that runs"}, then migrations and accounts ...`);
  const postgres = await startPostgres({ port: ports.postgres, databaseUrl });
  closers.add("Postgres", postgres.close);
  stopIfClosing(closers);
  await installSupabaseBase(postgres.url);
  await applyMigrations(postgres.url);
  await seedDatabase(postgres.url, {
    users: snaptrade.users(),
    connections: snaptrade.connections(),
    accounts: snaptrade.accounts(),
    secretsKey,
    fresh,
  });
  return postgres.url;
}

async function prepareRedis({ ports, redisUrl }: StackOptions, closers: Closers): Promise<string | undefined> {
  say(redisUrl === undefined ? "Redis: starting ..." : "Redis: the one that runs");
  const redis = await startRedis({ port: ports.redis, redisUrl });
  closers.add("Redis", redis.close);
  return redis.kind === "server" ? redis.url : undefined;
}

/** Waits for all, also when one fails: a part that is still starting must be there to be stopped. */
async function allSettled<T extends readonly unknown[]>(works: { [I in keyof T]: Promise<T[I]> }): Promise<T> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

/** On stderr: stdout is the caller's. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function stopIfClosing(closers: Closers): void {
  if (closers.isClosing()) throw new Error("Stopped while starting.");
}
