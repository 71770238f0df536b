import { readFileSync } from "node:fs";
import { parseEnv as parseDotenv } from "node:util";
import { describe, expect, test } from "vitest";
import { type EnvSource, parseEnv, SETTING_NAMES } from "@/lib/env";
import { envOf, keyOf, REQUIRED } from "@/tests/unit/required-env";

const HOUR = 3_600_000;

const faultsOf = (change: EnvSource): string[] => {
  const result = parseEnv({ ...REQUIRED, ...change });
  return result.kind === "bad" ? result.faults : [];
};

test("the required variables alone start the service with every default", () => {
  const { env, warnings } = envOf();
  expect(warnings).toEqual([]);
  expect(env).toMatchObject({
    appUrl: "https://app.example.com",
    redis: { keyPrefix: "" },
    qstash: { flowControlKey: "snaptrade-handlers", parallelism: 100, rate: 100, protectionBypass: undefined },
    snaptrade: { apiUrl: "https://api.snaptrade.com", webhookSecret: undefined, consumerKeys: ["marker-consumer-key"] },
    ttl: { webhookMs: 24 * HOUR, queuedMs: HOUR / 2, lockMs: HOUR / 2 },
    limits: {
      webhookMaxAgeMs: 24 * HOUR,
      rateLimit: 250,
      rateWindowMs: 60_000,
      backgroundShare: 0.75,
      cooldownDefaultMs: 60_000,
      cooldownMaxMs: HOUR / 4,
      jobMaxAttempts: 8,
      staleAfterMs: { holdings: 36 * HOUR, transactions: 36 * HOUR },
      minRunSpacingMs: 10_000,
      retentionMs: 30 * 24 * HOUR,
    },
  });
});

describe(".env.example", () => {
  const text = readFileSync(".env.example", "utf8");
  const example = parseDotenv(text);

  test("names every variable that is read, each once and with a line of meaning", () => {
    expect(Object.keys(example).sort()).toEqual([...SETTING_NAMES].sort());
    for (const name of SETTING_NAMES) expect(text.match(new RegExp(`^# .+\\n${name}=`, "gm"))).toHaveLength(1);
  });

  test("has each default as it is, and nothing where there is none", () => {
    expect(envOf({ ...example, ...REQUIRED })).toEqual(envOf());
    const withoutDefault = Object.keys(example).filter((name) => example[name] === "");
    const optional = ["SNAPTRADE_WEBHOOK_SECRET", "VERCEL_AUTOMATION_BYPASS_SECRET"];
    expect(withoutDefault.sort()).toEqual([...Object.keys(REQUIRED), ...optional].sort());
  });
});

test("nothing set: one message for each required variable", () => {
  const result = parseEnv({});
  const faults = result.kind === "bad" ? result.faults : [];
  expect(faults.map((fault) => fault.split(" ")[0])).toEqual(Object.keys(REQUIRED));
  for (const fault of faults) expect(fault).toMatch(/ is not set; expected .+\.$/);
});

test.each<[string, EnvSource, RegExp]>([
  ["an empty required one", { QSTASH_TOKEN: "" }, /^QSTASH_TOKEN is empty; expected/],
  ["a blank required one", { SUPABASE_URL: " \n" }, /^SUPABASE_URL is empty; expected/],
  [
    "a URL without a scheme",
    { APP_URL: "app.example.com" },
    /^APP_URL is "app\.example\.com"; expected the public base URL/,
  ],
  ["a URL with a path", { APP_URL: "https://app.example.com/base" }, /^APP_URL is .*without a path/],
  ["a URL with an empty query", { QSTASH_URL: "https://qstash.upstash.io?" }, /^QSTASH_URL is "https/],
  ["a URL with an empty fragment", { SUPABASE_URL: "https://x.supabase.co/#" }, /^SUPABASE_URL is "https/],
  [
    "a token that is a part of a variable's name",
    { QSTASH_TOKEN: "QSTASH_RATE", SNAPTRADE_QSTASH_RATE: "many" },
    /^SNAPTRADE_QSTASH_RATE is "many"/,
  ],
  ["another scheme", { SUPABASE_URL: "ftp://x.example.com" }, /^SUPABASE_URL is "ftp/],
  [
    "plain http in production",
    { APP_URL: "http://app.example.com", NODE_ENV: "production" },
    /^APP_URL is .* expected https/,
  ],
  [
    "a host that only looks local",
    { APP_URL: "http://127.0.0.1.example.com", NODE_ENV: "production" },
    /expected https/,
  ],
  [
    "a cron secret with a line end (B84)",
    { CRON_SECRET: "marker-cron-secret\n" },
    /^CRON_SECRET has 19 characters, with white space around/,
  ],
  [
    "a cron secret with a blank before",
    { CRON_SECRET: " marker-cron-secret" },
    /^CRON_SECRET has 19 characters, with white space around/,
  ],
  ["a short cron secret", { CRON_SECRET: "1234567" }, /^CRON_SECRET has 7 characters; expected 8 or more/],
  ["a cron secret made of nothing (B83)", { CRON_SECRET: "undefined" }, /^CRON_SECRET has 9 characters/],
  ["a cron secret that no header can carry", { CRON_SECRET: "geheimnis-für-alle" }, /^CRON_SECRET has 18 characters/],
  ...["SUPABASE_SECRET_KEY", "UPSTASH_REDIS_REST_TOKEN", "QSTASH_TOKEN", "VERCEL_AUTOMATION_BYPASS_SECRET"].flatMap(
    (name) =>
      ["line\nbreak", "line\rbreak", "a blank", "zero\u200bwidth", "für-alle"].map(
        (inside): [string, EnvSource, RegExp] => [
          `${name} with what no header takes, ${JSON.stringify(inside)}`,
          { [name]: `marker-${inside}` },
          new RegExp(`^${name} has \\d+ characters; expected .+ printable ASCII`),
        ],
      ),
  ),
  ["no consumer key but commas", { SNAPTRADE_CONSUMER_KEY: " , " }, /^SNAPTRADE_CONSUMER_KEY has 3 characters/],
  [
    "a secrets key of 31 bytes",
    { SNAPTRADE_SECRETS_KEY: keyOf(7, 31) },
    /^SNAPTRADE_SECRETS_KEY has 44 characters; expected base64 of 32 bytes/,
  ],
  [
    "a second secrets key that is none",
    { SNAPTRADE_SECRETS_KEY: `${keyOf(7)},x` },
    /^SNAPTRADE_SECRETS_KEY has 46 characters/,
  ],
  ["a secrets key in hex", { SNAPTRADE_SECRETS_KEY: "07".repeat(32) }, /^SNAPTRADE_SECRETS_KEY has 64 characters/],
  [
    "a duration without a unit",
    { SNAPTRADE_RETENTION: "30" },
    /^SNAPTRADE_RETENTION is "30"; expected a duration with its unit/,
  ],
  ["a duration of nothing", { SNAPTRADE_COOLDOWN_MAX: "0s" }, /^SNAPTRADE_COOLDOWN_MAX is "0s"/],
  ["a negative duration", { SNAPTRADE_COOLDOWN_MAX: "-1m" }, /^SNAPTRADE_COOLDOWN_MAX is "-1m"/],
  ["a duration of a text", { SNAPTRADE_WEBHOOK_MAX_AGE: "a day" }, /^SNAPTRADE_WEBHOOK_MAX_AGE is "a day"/],
  [
    "a claim of less than a second",
    { SNAPTRADE_ACCOUNT_LOCK_TTL: "900ms" },
    /^SNAPTRADE_ACCOUNT_LOCK_TTL is .*from 1s/,
  ],
  [
    "no parallelism",
    { SNAPTRADE_QSTASH_PARALLELISM: "0" },
    /^SNAPTRADE_QSTASH_PARALLELISM is "0"; expected a whole number above 0/,
  ],
  ["a rate that is no number", { SNAPTRADE_QSTASH_RATE: "many" }, /^SNAPTRADE_QSTASH_RATE is "many"/],
  ["half an attempt", { SNAPTRADE_JOB_MAX_ATTEMPTS: "1.5" }, /^SNAPTRADE_JOB_MAX_ATTEMPTS is "1\.5"/],
  [
    "a whole share",
    { SNAPTRADE_BACKGROUND_SHARE: "1" },
    /^SNAPTRADE_BACKGROUND_SHARE is "1"; expected a number between 0 and 1/,
  ],
  ["no share", { SNAPTRADE_BACKGROUND_SHARE: "0.0" }, /^SNAPTRADE_BACKGROUND_SHARE is "0\.0"/],
  [
    "development mode of QStash in production (B55)",
    { QSTASH_DEV: "true", NODE_ENV: "production" },
    /^QSTASH_DEV is "true"; expected it to be unset/,
  ],
  ["an environment name that would split a key", { VERCEL_ENV: "a:b" }, /^VERCEL_ENV is "a:b"/],
  [
    "a preview with production's URL",
    { VERCEL_ENV: "preview", VERCEL_PROJECT_PRODUCTION_URL: "App.example.com" },
    /^APP_URL is "https:\/\/app\.example\.com", the production deployment's, under VERCEL_ENV=preview/,
  ],
])("%s is one fault that says what to do", (_, change, message) => {
  const faults = faultsOf(change);
  expect(faults).toHaveLength(1);
  expect(faults[0]).toMatch(message);
});

test("all faults are told at once", () => {
  const faults = faultsOf({
    APP_URL: "http://a.example.com",
    NODE_ENV: "production",
    QSTASH_DEV: "1",
    SNAPTRADE_RETENTION: "x",
  });
  expect(faults.map((fault) => fault.split(" ")[0])).toEqual(["SNAPTRADE_RETENTION", "APP_URL", "QSTASH_DEV"]);
});

test("no message carries a secret, not even one that stands in the wrong variable (I10)", () => {
  const faults = faultsOf({
    CRON_SECRET: "marker-cron-secret\n",
    SNAPTRADE_SECRETS_KEY: "marker-secrets-key",
    SUPABASE_URL: "marker-supabase-key",
    UPSTASH_REDIS_REST_URL: "https://default:marker-password@redis.upstash.io",
    SNAPTRADE_QSTASH_RATE: "marker-qstash-token",
  });
  expect(faults).toHaveLength(5);
  expect(faults.join("\n")).not.toContain("marker-");
});

test.each([
  "https:default:marker@redis.upstash.io",
  "https:\\\\default:marker@redis.upstash.io",
  "https://default:mar/ker-marker@redis.upstash.io",
  "rediss://default:marker@redis.upstash.io:6379",
  "https://redis.upstash.io?_token=marker",
  "https://redis.upstash.io/#marker",
  "AX8sASQgMTExMTExMTEtMTEx-marker-UxYjIyMjIyMjI=",
])("a URL is never shown with its credentials, nor a token that stands where a URL should: %s", (given) => {
  const faults = faultsOf({ UPSTASH_REDIS_REST_URL: given });
  expect(faults).toEqual([expect.stringMatching(/^UPSTASH_REDIS_REST_URL (is|has) /)]);
  expect(faults.join("")).not.toContain("marker");
});

test.each(["http://127.0.0.1:3000", "http://localhost:3000", "http://[::1]:3000"])(
  "%s needs no https in production: it never leaves the machine",
  (url) => {
    expect(envOf({ APP_URL: url, NODE_ENV: "production" }).env.appUrl).toBe(url);
  },
);

test("URLs lose the slash at their end, so that paths can be appended", () => {
  const { env } = envOf({
    APP_URL: "https://App.example.com:443/",
    SNAPTRADE_API_URL: "http://127.0.0.1:8090/api/v1/",
  });
  expect(env.appUrl).toBe("https://app.example.com");
  expect(env.snaptrade.apiUrl).toBe("http://127.0.0.1:8090/api/v1");
});

test("keys are lists for rotation, white space trimmed, their order kept", () => {
  const { env } = envOf({
    SNAPTRADE_CONSUMER_KEY: " new-consumer-key , old-consumer-key,",
    SNAPTRADE_SECRETS_KEY: `${keyOf(1)}, ${keyOf(2)}`,
  });
  expect(env.snaptrade.consumerKeys).toEqual(["new-consumer-key", "old-consumer-key"]);
  expect(env.snaptrade.secretsKeys).toEqual([Buffer.alloc(32, 1), Buffer.alloc(32, 2)]);
  expect(env.secrets).toEqual(expect.arrayContaining(["new-consumer-key", "old-consumer-key", keyOf(1), keyOf(2)]));
});

test("every secret is told to the logger", () => {
  const optional = { SNAPTRADE_WEBHOOK_SECRET: "marker-webhook", VERCEL_AUTOMATION_BYPASS_SECRET: "marker-bypass" };
  const { env } = envOf(optional);
  expect(env.qstash.protectionBypass).toBe("marker-bypass");
  const marked = Object.values({ ...REQUIRED, ...optional }).filter((value) => value.startsWith("marker-"));
  expect(env.secrets).toEqual(expect.arrayContaining([...marked, keyOf(7)]));
});

test("outside production, keys carry the environment's name", () => {
  const preview = envOf({ VERCEL_ENV: "preview", VERCEL_PROJECT_PRODUCTION_URL: "www.example.com" });
  expect(preview.env.redis.keyPrefix).toBe("preview:");
  expect(preview.env.qstash.flowControlKey).toBe("snaptrade-handlers-preview");
  const production = envOf({ VERCEL_ENV: "production", VERCEL_PROJECT_PRODUCTION_URL: "app.example.com" });
  expect(production.env.redis.keyPrefix).toBe("");
  expect(production.env.qstash.flowControlKey).toBe("snaptrade-handlers");
});
