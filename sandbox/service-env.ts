import type { RedisFront } from "@/sandbox/redis/start-redis-front";
import type { Supabase } from "@/sandbox/supabase/start-supabase";

/** What the service must be told of the local stack. */
export type LocalServices = {
  appUrl: string;
  cronSecret: string;
  /** Base64 of 32 bytes. */
  secretsKey: string;
  supabase: Pick<Supabase, "url" | "secretKey">;
  redis: Pick<RedisFront, "url" | "token">;
  qstash: { url: string; token: string; currentSigningKey: string; nextSigningKey: string };
  snaptrade: { url: string; clientId: string; consumerKey: string; rateLimitPerMinute: number };
};

/** The environment in which the service runs against the local stack. */
export function serviceEnv(services: LocalServices): Record<string, string> {
  const { supabase, redis, qstash, snaptrade } = services;
  return {
    APP_URL: services.appUrl,
    CRON_SECRET: services.cronSecret,
    SUPABASE_URL: supabase.url,
    SUPABASE_SECRET_KEY: supabase.secretKey,
    UPSTASH_REDIS_REST_URL: redis.url,
    UPSTASH_REDIS_REST_TOKEN: redis.token,
    QSTASH_URL: qstash.url,
    QSTASH_TOKEN: qstash.token,
    QSTASH_CURRENT_SIGNING_KEY: qstash.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: qstash.nextSigningKey,
    SNAPTRADE_CLIENT_ID: snaptrade.clientId,
    SNAPTRADE_CONSUMER_KEY: snaptrade.consumerKey,
    SNAPTRADE_API_URL: snaptrade.url,
    SNAPTRADE_RATE_LIMIT_PER_MINUTE: String(snaptrade.rateLimitPerMinute),
    SNAPTRADE_SECRETS_KEY: services.secretsKey,
  };
}
