import { type Env, type EnvSource, parseEnv } from "@/lib/env";

/** 32 bytes, as SNAPTRADE_SECRETS_KEY is written. */
export const keyOf = (byte: number, bytes = 32) => Buffer.alloc(bytes, byte).toString("base64");

/** What the service cannot start without; what is secret in it begins with "marker-". */
export const REQUIRED = {
  APP_URL: "https://app.example.com",
  CRON_SECRET: "marker-cron-secret",
  SUPABASE_URL: "https://project.supabase.co",
  SUPABASE_SECRET_KEY: "marker-supabase-key",
  UPSTASH_REDIS_REST_URL: "https://redis.upstash.io",
  UPSTASH_REDIS_REST_TOKEN: "marker-redis-token",
  QSTASH_URL: "https://qstash-eu-central-1.upstash.io",
  QSTASH_TOKEN: "marker-qstash-token",
  QSTASH_CURRENT_SIGNING_KEY: "marker-current-key",
  QSTASH_NEXT_SIGNING_KEY: "marker-next-key",
  SNAPTRADE_CLIENT_ID: "CLIENT",
  SNAPTRADE_CONSUMER_KEY: "marker-consumer-key",
  SNAPTRADE_SECRETS_KEY: keyOf(7),
};

/** The environment of these and what is changed, with its warnings. */
export function envOf(change: EnvSource = {}): { env: Env; warnings: string[] } {
  const result = parseEnv({ ...REQUIRED, ...change });
  if (result.kind === "bad") throw new Error(result.faults.join("\n"));
  return result;
}
