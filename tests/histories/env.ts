import { guardContext } from "@/lib/composition";
import { type Env, parseEnv } from "@/lib/env";
import { createLogger } from "@/lib/log";
import { encryptSecret } from "@/lib/secrets";

export const USER = "user-0000";
export const APP_URL = "http://app.test";
/** The deprecated secret in the body: a signature would be half the cost of an event. */
export const WEBHOOK_SECRET = "histories-webhook-secret";

export const ENV: Env = readEnv();
export const GUARD_SETTINGS = guardContext(ENV, createLogger({ secrets: [], level: "silent" })).settings;
export const SECRET = encryptSecret("secret", ENV.snaptrade.secretsKeys, USER);

function readEnv(): Env {
  const parsed = parseEnv({
    APP_URL,
    CRON_SECRET: "histories-cron-secret",
    SUPABASE_URL: "http://supabase.test",
    SUPABASE_SECRET_KEY: "histories-supabase-key",
    UPSTASH_REDIS_REST_URL: "http://redis.test",
    UPSTASH_REDIS_REST_TOKEN: "histories-redis-token",
    QSTASH_URL: "http://qstash.test",
    QSTASH_TOKEN: "histories-qstash-token",
    QSTASH_CURRENT_SIGNING_KEY: "histories-current-key",
    QSTASH_NEXT_SIGNING_KEY: "histories-next-key",
    SNAPTRADE_CLIENT_ID: "histories",
    SNAPTRADE_CONSUMER_KEY: "histories-consumer-key",
    SNAPTRADE_WEBHOOK_SECRET: WEBHOOK_SECRET,
    SNAPTRADE_SECRETS_KEY: Buffer.alloc(32, 7).toString("base64"),
    // Small enough for a few runs to use it up.
    SNAPTRADE_RATE_LIMIT_PER_MINUTE: "60",
    SNAPTRADE_JOB_MAX_ATTEMPTS: "4",
  });
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  return parsed.env;
}
