import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { parseEnv } from "@/lib/env";
import { createPublisher, jobMessage } from "@/lib/jobs/publisher";

const QSTASH = "https://qstash.test";
const server = setupServer();
beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
afterEach(() => {
  server.resetHandlers();
  vi.useRealTimers();
});
afterAll(() => server.close());

function publisher(env: Record<string, string> = {}) {
  const parsed = parseEnv({
    APP_URL: "https://app.test",
    CRON_SECRET: "cron-secret-cron-secret",
    SUPABASE_URL: "https://supabase.test",
    SUPABASE_SECRET_KEY: "sb_secret_x",
    UPSTASH_REDIS_REST_URL: "https://redis.test",
    UPSTASH_REDIS_REST_TOKEN: "redis-token",
    QSTASH_URL: QSTASH,
    QSTASH_TOKEN: "qstash-token",
    QSTASH_CURRENT_SIGNING_KEY: "sig_current",
    QSTASH_NEXT_SIGNING_KEY: "sig_next",
    SNAPTRADE_CLIENT_ID: "CLIENT",
    SNAPTRADE_CONSUMER_KEY: "consumer-key",
    SNAPTRADE_SECRETS_KEY: Buffer.alloc(32, 1).toString("base64"),
    ...env,
  });
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  return createPublisher(parsed.env);
}

function message(delivery: number, delayMs = 0) {
  const jobId = "00000000-0000-4000-8000-000000000001";
  return jobMessage({ jobId, workType: "holdings", accountId: "acct-1", delivery }, delayMs);
}

type Seen = { url: string; headers: Headers; body: unknown };

function answer(reply: (seen: Seen) => Response | Promise<Response>): Seen[] {
  const seen: Seen[] = [];
  server.use(
    http.post(`${QSTASH}/v2/*`, async ({ request }) => {
      const one = { url: request.url, headers: request.headers, body: await request.json() };
      seen.push(one);
      return reply(one);
    }),
  );
  return seen;
}

test("a publish names its flow control with a period, its retries, delay, time limit, callback and a fresh id", async () => {
  const seen = answer(() => HttpResponse.json({ messageId: "msg_1" }));
  expect(await publisher().publish([message(3, 1_001)])).toEqual({ results: ["published"], reason: null });
  const [one] = seen;
  expect(one?.url).toBe(`${QSTASH}/v2/publish/https://app.test/api/internal/process-snaptrade-holdings-sync`);
  expect(Object.fromEntries(one?.headers ?? [])).toMatchObject({
    "upstash-flow-control-key": "snaptrade-handlers",
    "upstash-flow-control-value": "parallelism=100, rate=100, period=1s",
    "upstash-retries": "3",
    "upstash-retry-delay": "10000 * pow(3, retried)",
    "upstash-delay": "2s",
    "upstash-timeout": "75s",
    "upstash-failure-callback": "https://app.test/api/internal/snaptrade-sync-failed",
    "upstash-deduplication-id": "00000000-0000-4000-8000-000000000001-3",
  });
  expect(one?.body).toEqual({
    jobId: "00000000-0000-4000-8000-000000000001",
    workType: "holdings",
    accountId: "acct-1",
    delivery: 3,
  });
});

test("a preview's flow-control key is its own, and a protected deployment is reached by callbacks too", async () => {
  const seen = answer(() => HttpResponse.json({ messageId: "msg_1" }));
  await publisher({ VERCEL_ENV: "preview", VERCEL_AUTOMATION_BYPASS_SECRET: "bypass" }).publish([message(1)]);
  expect(Object.fromEntries(seen[0]?.headers ?? [])).toMatchObject({
    "upstash-flow-control-key": "snaptrade-handlers-preview",
    "upstash-forward-x-vercel-protection-bypass": "bypass",
    "upstash-failure-callback-forward-x-vercel-protection-bypass": "bypass",
  });
});

test("an entry of a batch that carries no message id was not published", async () => {
  answer(() => HttpResponse.json([{ messageId: "msg_1" }, { error: "quota" }, { messageId: "msg_3" }]));
  const { results } = await publisher().publish([message(1), message(2), message(3)]);
  expect(results).toEqual(["published", "failed", "published"]);
});

test("publishing the same messages again sends the same bodies again", async () => {
  const seen = answer(() => HttpResponse.json([{ messageId: "a" }, { messageId: "b" }]));
  const messages = [message(1), message(2)];
  await publisher().publish(messages);
  await publisher().publish(messages);
  expect(seen[1]?.body).toEqual(seen[0]?.body);
});

test.each([
  ["a refusal", () => HttpResponse.json({ error: "quota" }, { status: 429 })],
  ["a page of HTML", () => new HttpResponse("<html>", { status: 502 })],
  ["a cut connection", () => HttpResponse.error()],
])("%s is a publish that failed, asked for once", async (_, reply) => {
  const seen = answer(reply);
  vi.spyOn(console, "warn").mockImplementation(() => {});
  vi.spyOn(console, "error").mockImplementation(() => {});
  const { results, reason } = await publisher().publish([message(1)]);
  expect(results).toEqual(["failed"]);
  expect(reason).not.toContain("qstash-token");
  expect(seen).toHaveLength(1);
});

test("a QStash that never answers is given up after three seconds", async () => {
  vi.useFakeTimers();
  answer(() => new Promise<Response>(() => {}));
  const publishing = publisher().publish([message(1)]);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(await publishing).toMatchObject({ results: ["failed"], reason: expect.stringContaining("3000 ms") });
});
