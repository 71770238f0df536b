import { expect, test } from "vitest";
import { maxDuration as holdingsDuration } from "@/app/api/internal/process-snaptrade-holdings-sync/route";
import { maxDuration as transactionsDuration } from "@/app/api/internal/process-snaptrade-transactions-sync/route";
import { maxDuration as webhookDuration } from "@/app/api/snaptrade/webhook/route";
import { parseEnv } from "@/lib/env";
import * as timings from "@/lib/timings";
import { serviceEnv } from "@/sandbox/service-env";

const SECOND = 1000;

test.each([
  ["holdings", holdingsDuration],
  ["transactions", transactionsDuration],
])(
  "a %s run stops before its function is cut, that before QStash gives up, and all long before the lock expires",
  (_, maxDuration) => {
    const keys = { token: "t", currentSigningKey: "c", nextSigningKey: "n" };
    const parsed = parseEnv(
      serviceEnv({
        appUrl: "https://app.example.com",
        cronSecret: "cron-secret",
        secretsKey: Buffer.alloc(32).toString("base64"),
        supabase: { url: "https://db.example.com", secretKey: "s" },
        redis: { url: "https://redis.example.com", token: "t" },
        qstash: { url: "https://qstash.example.com", ...keys },
        snaptrade: { url: "https://snaptrade.example.com", clientId: "c", consumerKey: "k", rateLimitPerMinute: 250 },
      }),
    );
    if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
    const { RUN_DEADLINE_MS, RUN_LEASE_MS, QSTASH_TIMEOUT_S } = timings;
    expect(RUN_DEADLINE_MS).toBeLessThan(maxDuration * SECOND);
    expect(maxDuration).toBeLessThan(QSTASH_TIMEOUT_S);
    // The function is gone before another run may begin, and no lock expires under a run.
    expect(RUN_LEASE_MS).toBeGreaterThanOrEqual(maxDuration * SECOND);
    expect(parsed.env.ttl.lockMs).toBeGreaterThan(RUN_LEASE_MS);
    expect(parsed.env.ttl.lockMs).toBeGreaterThan(QSTASH_TIMEOUT_S * SECOND);
  },
);

test("the slowest webhook is answered before its function is cut", () => {
  const { REDIS_TIMEOUT_MS, POSTGRES_TIMEOUT_MS, PUBLISH_TIMEOUT_MS } = timings;
  const slowest = 2 * REDIS_TIMEOUT_MS + POSTGRES_TIMEOUT_MS + PUBLISH_TIMEOUT_MS;
  expect(slowest).toBeLessThan(webhookDuration * SECOND);
});
