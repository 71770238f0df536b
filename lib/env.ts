import { z } from "zod";
import {
  aesKeyList,
  bearerSecret,
  duration,
  keyList,
  origin,
  share,
  text,
  token,
  url,
  wholeNumber,
} from "@/lib/env-values";
import { warningsOf } from "@/lib/env-warnings";
import { createScrub } from "@/lib/scrub";

/** Every setting with its default. `.env.example` says what each means. */
const settings = z.object({
  APP_URL: origin("the public base URL without a path, such as https://app.example.com"),
  CRON_SECRET: bearerSecret(),
  SUPABASE_URL: url("the URL of the Supabase project"),
  SUPABASE_SECRET_KEY: token("the secret key of the Supabase project"),
  UPSTASH_REDIS_REST_URL: url("the REST URL of the Upstash Redis database"),
  UPSTASH_REDIS_REST_TOKEN: token("the REST token of the Upstash Redis database"),
  QSTASH_URL: url("the QStash URL of the region that the token and the keys belong to"),
  QSTASH_TOKEN: token("the QStash token"),
  QSTASH_CURRENT_SIGNING_KEY: text("the current QStash signing key"),
  QSTASH_NEXT_SIGNING_KEY: text("the next QStash signing key"),
  SNAPTRADE_CLIENT_ID: text("the SnapTrade client id"),
  SNAPTRADE_CONSUMER_KEY: keyList("the SnapTrade consumer key, several with commas"),
  SNAPTRADE_API_URL: url("the URL of SnapTrade's API").prefault("https://api.snaptrade.com"),
  SNAPTRADE_WEBHOOK_SECRET: text("a secret").optional(),
  SNAPTRADE_SECRETS_KEY: aesKeyList(),
  SNAPTRADE_QSTASH_PARALLELISM: wholeNumber().prefault("100"),
  SNAPTRADE_QSTASH_RATE: wholeNumber().prefault("100"),
  SNAPTRADE_WEBHOOK_DEDUPE_TTL: duration("1s").prefault("24h"),
  SNAPTRADE_ACCOUNT_QUEUED_TTL: duration("1s").prefault("30m"),
  SNAPTRADE_ACCOUNT_LOCK_TTL: duration("1s").prefault("30m"),
  SNAPTRADE_WEBHOOK_MAX_AGE: duration().prefault("24h"),
  SNAPTRADE_RATE_LIMIT_PER_MINUTE: wholeNumber().prefault("250"),
  SNAPTRADE_BACKGROUND_SHARE: share().prefault("0.75"),
  SNAPTRADE_RATE_WINDOW: duration().prefault("60s"),
  SNAPTRADE_COOLDOWN_DEFAULT: duration().prefault("60s"),
  SNAPTRADE_COOLDOWN_MAX: duration().prefault("15m"),
  SNAPTRADE_JOB_MAX_ATTEMPTS: wholeNumber().prefault("8"),
  SNAPTRADE_STALE_AFTER_HOLDINGS: duration().prefault("36h"),
  SNAPTRADE_STALE_AFTER_TRANSACTIONS: duration().prefault("36h"),
  SNAPTRADE_MIN_RUN_SPACING: duration().prefault("10s"),
  SNAPTRADE_RETENTION: duration().prefault("30d"),
  VERCEL_AUTOMATION_BYPASS_SECRET: token("a secret").optional(),
});

type Settings = z.infer<typeof settings>;

/** The names of all settings, for `.env.example` and its test. */
export const SETTING_NAMES: readonly string[] = Object.keys(settings.shape);

const SECRET_NAMES: readonly string[] = [
  "CRON_SECRET",
  "SUPABASE_SECRET_KEY",
  "UPSTASH_REDIS_REST_TOKEN",
  "QSTASH_TOKEN",
  "QSTASH_CURRENT_SIGNING_KEY",
  "QSTASH_NEXT_SIGNING_KEY",
  "SNAPTRADE_CONSUMER_KEY",
  "SNAPTRADE_WEBHOOK_SECRET",
  "SNAPTRADE_SECRETS_KEY",
  "VERCEL_AUTOMATION_BYPASS_SECRET",
] satisfies (keyof Settings)[];

export type EnvSource = Readonly<Record<string, string | undefined>>;
export type EnvResult = { kind: "ok"; env: Env; warnings: string[] } | { kind: "bad"; faults: string[] };
export type Env = ReturnType<typeof group>;

/**
 * Reads the whole environment once, at the composition root. Every value is trimmed and an empty one counts as unset,
 * except `CRON_SECRET`: Vercel sends it as it stands, so white space around it is a fault. `faults` has one message for
 * each variable that keeps the service from starting, `warnings` one for each setting that is allowed but unwise; none
 * carries a secret.
 */
export function parseEnv(source: EnvSource): EnvResult {
  const parsed = settings.safeParse(Object.fromEntries(SETTING_NAMES.map((name) => [name, settingOf(source, name)])));
  const scrub = createScrub(secretsOf(source));
  // The name at its beginning stays: a secret may be a part of it.
  const faults = [...settingFaults(parsed.error?.issues ?? [], source), ...deploymentFaults(source)].map((fault) =>
    fault.replace(/ .*$/s, scrub),
  );
  if (!parsed.success || faults.length > 0) return { kind: "bad", faults };
  const env = group(parsed.data, source);
  return { kind: "ok", env, warnings: warningsOf(env) };
}

function settingOf(source: EnvSource, name: string): string | undefined {
  const value = source[name];
  if (value === undefined || value.trim() === "") return undefined;
  return name === "CRON_SECRET" ? value : value.trim();
}

/** Whole values and, of lists, each entry. */
function secretsOf(source: EnvSource): string[] {
  const values = SECRET_NAMES.flatMap((name) => settingOf(source, name) ?? []);
  return [...new Set(values.flatMap((value) => [value, ...value.split(",").map((key) => key.trim())]))];
}

function group(given: Settings, source: EnvSource) {
  const vercelEnv = settingOf(source, "VERCEL_ENV");
  const isShared = vercelEnv === undefined || vercelEnv === "production";
  return {
    appUrl: given.APP_URL,
    cronSecret: given.CRON_SECRET,
    supabase: { url: given.SUPABASE_URL, secretKey: given.SUPABASE_SECRET_KEY },
    redis: {
      url: given.UPSTASH_REDIS_REST_URL,
      token: given.UPSTASH_REDIS_REST_TOKEN,
      /** Of every key but the budget's and the cooldowns', which all deployments of one client id share. */
      keyPrefix: isShared ? "" : `${vercelEnv}:`,
    },
    qstash: {
      url: given.QSTASH_URL,
      token: given.QSTASH_TOKEN,
      currentSigningKey: given.QSTASH_CURRENT_SIGNING_KEY,
      nextSigningKey: given.QSTASH_NEXT_SIGNING_KEY,
      /** One key an environment: the settings of a flow-control key are the last writer's. */
      flowControlKey: isShared ? "snaptrade-handlers" : `snaptrade-handlers-${vercelEnv}`,
      parallelism: given.SNAPTRADE_QSTASH_PARALLELISM,
      /** Deliveries a second. */
      rate: given.SNAPTRADE_QSTASH_RATE,
      /** Sent as `x-vercel-protection-bypass`, so that QStash reaches a protected deployment. */
      protectionBypass: given.VERCEL_AUTOMATION_BYPASS_SECRET,
    },
    snaptrade: {
      clientId: given.SNAPTRADE_CLIENT_ID,
      /** All verify, the first signs. */
      consumerKeys: given.SNAPTRADE_CONSUMER_KEY,
      apiUrl: given.SNAPTRADE_API_URL,
      webhookSecret: given.SNAPTRADE_WEBHOOK_SECRET,
      /** 32 bytes each. All decrypt, the first encrypts. */
      secretsKeys: given.SNAPTRADE_SECRETS_KEY,
    },
    ttl: {
      webhookMs: given.SNAPTRADE_WEBHOOK_DEDUPE_TTL,
      queuedMs: given.SNAPTRADE_ACCOUNT_QUEUED_TTL,
      lockMs: given.SNAPTRADE_ACCOUNT_LOCK_TTL,
    },
    limits: {
      webhookMaxAgeMs: given.SNAPTRADE_WEBHOOK_MAX_AGE,
      /** Provider calls in one window of `rateWindowMs`. */
      rateLimit: given.SNAPTRADE_RATE_LIMIT_PER_MINUTE,
      rateWindowMs: given.SNAPTRADE_RATE_WINDOW,
      backgroundShare: given.SNAPTRADE_BACKGROUND_SHARE,
      cooldownDefaultMs: given.SNAPTRADE_COOLDOWN_DEFAULT,
      cooldownMaxMs: given.SNAPTRADE_COOLDOWN_MAX,
      jobMaxAttempts: given.SNAPTRADE_JOB_MAX_ATTEMPTS,
      staleAfterMs: {
        holdings: given.SNAPTRADE_STALE_AFTER_HOLDINGS,
        transactions: given.SNAPTRADE_STALE_AFTER_TRANSACTIONS,
      },
      minRunSpacingMs: given.SNAPTRADE_MIN_RUN_SPACING,
      retentionMs: given.SNAPTRADE_RETENTION,
    },
    /** For the logger: none of these may appear in a line. */
    secrets: secretsOf(source),
  };
}

function settingFaults(issues: readonly z.core.$ZodIssue[], source: EnvSource): string[] {
  return issues.map(({ path, message }) => {
    const name = String(path[0]);
    return `${name} ${found(name, source[name])}; expected ${message}.`;
  });
}

/** What stands there. Of a secret, and of what may be one, the length is all that may be told. */
function found(name: string, value: string | undefined): string {
  if (value === undefined) return "is not set";
  if (value.trim() === "") return "is empty";
  const space = value === value.trim() ? "" : ", with white space around them";
  const given = value.trim();
  if (SECRET_NAMES.includes(name) || isLikeSecret(given)) return `has ${value.length} characters${space}`;
  const shown = given.replace(/^.*@/s, "[credentials]@").replace(/[?#].*$/s, "?[query]");
  return `is ${JSON.stringify(shown.length > 80 ? `${shown.slice(0, 80)}...` : shown)}`;
}

/** Long, and no URL: two variables that were taken for each other are a common slip. */
function isLikeSecret(given: string): boolean {
  return given.length > 24 && !/^[a-z]+:/i.test(given);
}

/** What no single variable shows: the same values are right in one deployment and dangerous in another. */
function deploymentFaults(source: EnvSource): string[] {
  const faults: string[] = [];
  const isProduction = source.NODE_ENV === "production";
  const vercelEnv = settingOf(source, "VERCEL_ENV");
  const appUrl = settingOf(source, "APP_URL") ?? "";
  const app = URL.canParse(appUrl) ? new URL(appUrl) : null;

  if (isProduction && app?.protocol === "http:" && !isLoopback(app.hostname)) {
    faults.push(`APP_URL ${found("APP_URL", appUrl)}; expected https in production.`);
  }
  // With it the QStash client takes the public development keys, whatever keys it is given (measured with 2.12.0).
  if (isProduction && settingOf(source, "QSTASH_DEV") !== undefined) {
    faults.push(`QSTASH_DEV ${found("QSTASH_DEV", source.QSTASH_DEV)}; expected it to be unset in production.`);
  }
  if (vercelEnv !== undefined && !/^[A-Za-z0-9_-]{1,32}$/.test(vercelEnv)) {
    faults.push(
      `VERCEL_ENV ${found("VERCEL_ENV", vercelEnv)}; expected letters, digits, _ or - (it becomes part of keys).`,
    );
  }
  // Vercel tells every deployment the production host, without a scheme (Vercel docs, system environment variables).
  // It is the shortest production domain: another domain of the same project cannot be told apart from a preview's.
  const productionHost = settingOf(source, "VERCEL_PROJECT_PRODUCTION_URL")?.toLowerCase();
  if (vercelEnv !== undefined && vercelEnv !== "production" && app !== null && app.host === productionHost) {
    faults.push(
      `APP_URL ${found("APP_URL", appUrl)}, the production deployment's, under VERCEL_ENV=${vercelEnv}; ` +
        "expected this deployment's own URL, or its jobs run in production.",
    );
  }
  return faults;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}
