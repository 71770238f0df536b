import fc from "fast-check";
import { expect, test } from "vitest";
import { parseEnv, SETTING_NAMES } from "@/lib/env";
import { hostileText } from "@/tests/fuzz/hostile";
import { fuzzRuns } from "@/tests/fuzz/runs";

const NAMES = [...SETTING_NAMES, "NODE_ENV", "VERCEL_ENV", "VERCEL_PROJECT_PRODUCTION_URL", "QSTASH_DEV"];
const MARK = "m4rk3d";

/** A good value of each required setting; the secrets carry the mark and are as long as those that are given out. */
const GOOD: Record<string, string> = {
  APP_URL: "https://app.example.com",
  CRON_SECRET: `${MARK}-cron-secret-of-a-usual-length`,
  SUPABASE_URL: "https://x.supabase.co",
  SUPABASE_SECRET_KEY: `sb_secret_${MARK}-of-a-usual-length`,
  UPSTASH_REDIS_REST_URL: "https://x.upstash.io",
  UPSTASH_REDIS_REST_TOKEN: `${MARK}-redis-token-of-a-usual-length`,
  QSTASH_URL: "https://qstash.upstash.io",
  QSTASH_TOKEN: `${MARK}-qstash-token-of-a-usual-length`,
  QSTASH_CURRENT_SIGNING_KEY: `sig_${MARK}-current-signing-key`,
  QSTASH_NEXT_SIGNING_KEY: `sig_${MARK}-next-signing-key`,
  SNAPTRADE_CLIENT_ID: "CLIENT",
  SNAPTRADE_CONSUMER_KEY: `${MARK}-consumer-key-of-a-usual-length`,
  SNAPTRADE_SECRETS_KEY: `${MARK}${"A".repeat(37)}=`,
};

const value = fc.oneof(
  hostileText,
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "true",
    "production",
    "preview",
    "0",
    "-1",
    "1e3",
    "99999999999",
    "1.5h",
    "90s",
    ".5",
    "http://[::1",
    "https://u:p@h/?q#f",
  ),
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
);
/** Some settings are anything; two others have changed places, which is the commonest slip. */
const source = fc
  .tuple(
    fc.dictionary(fc.constantFrom(...NAMES), fc.option(value, { nil: undefined }), {
      maxKeys: 5,
      noNullPrototype: true,
    }),
    fc.option(fc.tuple(fc.constantFrom(...Object.keys(GOOD)), fc.constantFrom(...Object.keys(GOOD)))),
  )
  .map(([odd, swapped]) => {
    const [a, b] = swapped ?? ["", ""];
    const places = swapped === null ? {} : { [a]: GOOD[b], [b]: GOOD[a] };
    return { ...GOOD, ...places, ...odd };
  });

test("whatever the environment holds: an Env, or faults that each name a variable on one line and tell no secret (I10)", () => {
  const seen = { ok: 0, bad: 0 };
  fc.assert(
    fc.property(source, (given) => {
      const result = parseEnv(given);
      seen[result.kind] += 1;
      const said = result.kind === "bad" ? result.faults : result.warnings;
      if (result.kind === "bad") expect(said.length).toBeGreaterThan(0);
      for (const line of said) {
        expect(NAMES).toContain(/^[A-Z_]+/.exec(line)?.[0]);
        expect(line).not.toMatch(/[\r\n]/);
        expect(line).not.toContain(MARK);
        expect(line.length).toBeLessThan(600);
      }
      if (result.kind === "ok") {
        const { env } = result;
        expect(
          Object.values(env.limits).flatMap((limit) => (typeof limit === "number" ? [limit] : Object.values(limit))),
        ).toSatisfy((limits: number[]) => limits.every((limit) => Number.isFinite(limit) && limit > 0));
        for (const url of [env.appUrl, env.supabase.url, env.redis.url, env.qstash.url, env.snaptrade.apiUrl]) {
          expect(url).toMatch(/^https?:\/\/[^@/?#]+(\/[^?#]*)?$/);
        }
        expect(env.redis.keyPrefix).toMatch(/^([A-Za-z0-9_-]{1,32}:)?$/);
      }
    }),
    fuzzRuns(400, 0.2),
  );
  expect(Math.min(seen.ok, seen.bad)).toBeGreaterThan(0);
}, 600_000);
