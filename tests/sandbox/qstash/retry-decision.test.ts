import { expect, test } from "vitest";
import { decideRetry } from "@/sandbox/qstash/retry-decision";
import { parseRetryDelay } from "@/sandbox/qstash/retry-delay-expression";

const NOW = Date.parse("2026-03-01T00:00:00Z");
const DAY_MS = 86_400_000;

function answered(status: number, headers: Record<string, string> = {}) {
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  return { kind: "answer" as const, status, headers: lists, body: Buffer.alloc(0) };
}

function delayAfter(headers: Record<string, string>, retried = 0, expression?: string): number {
  const retryDelay = expression === undefined ? undefined : parseRetryDelay(expression);
  if (retryDelay !== undefined && "error" in retryDelay) throw new Error(retryDelay.error);
  const decision = decideRetry(answered(503, headers), { retried, maxRetries: 99, retryDelay }, NOW);
  if (decision.kind !== "retry") throw new Error(decision.kind);
  return decision.delayMs;
}

test.each([
  [200, "delivered"],
  [204, "delivered"],
  [299, "delivered"],
  [199, "retry"],
  [300, "retry"],
  [301, "retry"],
  [404, "retry"],
  [429, "retry"],
  [489, "retry"],
  [500, "retry"],
])("only 2xx is success: %d -> %s", (status, kind) => {
  expect(decideRetry(answered(status), { retried: 0, maxRetries: 3, retryDelay: undefined }, NOW).kind).toBe(kind);
});

test.each([
  [0, "12s"],
  [1, "2m28s"],
  [2, "30m8s"],
  [3, "6h7m6s"],
  [4, "24h"],
  [5, "24h"],
])("the default backoff after %d retries is the documented %s", (retried, documented) => {
  const seconds = Math.floor(delayAfter({}, retried) / 1_000);
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  const shown = [h > 0 ? `${h}h` : "", m > 0 ? `${m}m` : "", s > 0 ? `${s}s` : ""].join("");
  expect(shown).toBe(documented);
});

test.each([
  [{ "retry-after": "0" }, 0],
  [{ "retry-after": "10" }, 10_000],
  [{ "retry-after": "6m5s" }, 365_000],
  [{ "retry-after": "1.5s" }, 1_500],
  [{ "retry-after": "250ms" }, 250],
  [{ "retry-after": "2000000µs" }, 2_000],
  [{ "retry-after": "Sun, 01 Mar 2026 00:00:40 GMT" }, 40_000],
  [{ "retry-after": "Sat, 28 Feb 2026 23:00:00 GMT" }, 0],
  [{ "x-ratelimit-reset": "20" }, 20_000],
  [{ "x-ratelimit-reset-requests": "1m" }, 60_000],
  [{ "x-ratelimit-reset-tokens": "5" }, 5_000],
  [{ "retry-after": "86400" }, DAY_MS],
])("%j waits %d ms", (headers, expected) => {
  expect(delayAfter(headers)).toBe(expected);
});

test.each([
  { "retry-after": "86401" },
  { "retry-after": "24h1s" },
  { "x-ratelimit-reset": "1772323200" },
  { "retry-after": "Tue, 03 Mar 2026 00:00:00 GMT" },
  { "retry-after": "soon" },
  { "retry-after": "-5" },
  { "retry-after": "1d" },
  { "retry-after": "" },
])("%j is beyond a day or unreadable: the backoff applies", (headers) => {
  expect(delayAfter(headers)).toBe(delayAfter({}));
  expect(delayAfter(headers, 1, "7000")).toBe(7_000);
});

test("the destination's header wins over the message's own expression", () => {
  expect(delayAfter({ "retry-after": "3" }, 0, "7000")).toBe(3_000);
});

test("an expression is evaluated with the retries so far and stays between 0 and a day", () => {
  expect(delayAfter({}, 2, "1000 * (1 + retried)")).toBe(3_000);
  expect(delayAfter({}, 0, "0 - 5")).toBe(0);
  expect(delayAfter({}, 0, "pow(10, 30)")).toBe(DAY_MS);
  expect(delayAfter({}, 0, "1 / 0")).toBe(delayAfter({}));
});

test("a message has failed when its retries are used up, and at once after 489 with the header", () => {
  const policy = { retried: 3, maxRetries: 3, retryDelay: undefined };
  expect(decideRetry(answered(500), policy, NOW).kind).toBe("failed");
  expect(decideRetry({ kind: "error", reason: "refused" }, policy, NOW).kind).toBe("failed");
  const refusing = answered(489, { "upstash-nonretryable-error": "true" });
  expect(decideRetry(refusing, { ...policy, retried: 0 }, NOW).kind).toBe("failed");
  const otherStatus = answered(400, { "upstash-nonretryable-error": "true" });
  expect(decideRetry(otherStatus, { ...policy, retried: 0 }, NOW).kind).toBe("retry");
});
