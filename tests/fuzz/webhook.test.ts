import { isUtf8 } from "node:buffer";
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { handled } from "@/lib/http/route";
import { receiveWebhook } from "@/lib/webhook/receive-webhook";
import { CONSUMER_KEY, countingService, NOW, WEBHOOK_SECRET } from "@/tests/fuzz/counting-service";
import { hostileHeaders, hostileValue } from "@/tests/fuzz/hostile";
import { fuzzRuns } from "@/tests/fuzz/runs";
import { jsonObjectText } from "@/tests/unit/webhook/arbitrary-json";

const LIMIT = 256 * 1024;
const MAX_DEPTH = 100;
const ID = /^[A-Za-z0-9_.-]{1,128}$/;
const encode = (text: string) => new TextEncoder().encode(text);

const answers = {
  guards: {
    claimWebhook: async () => ({ kind: "claimed" as const }),
    settleWebhook: async () => [],
    count: async () => undefined,
  },
  store: {
    acceptEvent: async () => ({ outcome: "accepted" as const, jobIds: [], publish: [], queued: null, differs: false }),
  },
};
const strict = countingService(answers);
const lenient = countingService(answers, { SNAPTRADE_WEBHOOK_SECRET: WEBHOOK_SECRET });

/** Documents of the shape of an event, each field of which may be anything. */
const event = fc.record(
  {
    webhookId: fc.oneof({ weight: 3, arbitrary: fc.uuid() }, hostileValue),
    webookId: hostileValue,
    eventType: fc.oneof(
      fc.constantFrom(
        "ACCOUNT_HOLDINGS_UPDATED",
        "NEW_ACCOUNT_AVAILABLE",
        "CONNECTION_BROKEN",
        "USER_DELETED",
        "USER_X",
      ),
      hostileValue,
    ),
    eventTimestamp: fc.oneof(
      { weight: 5, arbitrary: fc.constant(new Date(NOW).toISOString()) },
      fc.constantFrom("2026-09-01T12:00:00.123456789+15:59", "2026-09-01 11:59", "0000-01-01T00:00:00Z", "99999-01-01"),
      hostileValue,
    ),
    accountId: fc.oneof(fc.constant("acct-1"), hostileValue),
    brokerageAuthorizationId: hostileValue,
    connectionId: hostileValue,
    userId: hostileValue,
    webhookSecret: fc.oneof(fc.constant(WEBHOOK_SECRET), hostileValue),
    details: fc.oneof(
      hostileValue,
      fc.record({ positions: fc.record({ success: hostileValue }), orders: hostileValue }, { requiredKeys: [] }),
    ),
    ["__proto__"]: hostileValue,
    constructor: hostileValue,
  },
  { requiredKeys: [], noNullPrototype: false },
);

const nested = fc
  .tuple(fc.constantFrom(["[", "]"], ['{"a":', "}"], ['[{"__proto__":', "}]"]), fc.nat({ max: 120 }), fc.boolean())
  .map(([[open = "", close = ""], depth, deep]) => {
    const times = deep ? depth * 200 : depth;
    return `{"a":${open.repeat(times)}1${close.repeat(times)}}`;
  });

/** Around the limit, which is rare: each costs as much as a hundred small ones. */
const large = fc
  .oneof(fc.integer({ min: LIMIT - 3, max: LIMIT + 3 }), fc.integer({ min: 100_000, max: 600_000 }))
  .map((size) => `{"a":"${"x".repeat(size - '{"a":""}'.length)}"}`);

const body: fc.Arbitrary<Uint8Array> = fc.oneof(
  { weight: 30, arbitrary: event.map((fields) => encode(JSON.stringify(fields))) },
  { weight: 25, arbitrary: jsonObjectText().map(encode) },
  { weight: 15, arbitrary: fc.json().map(encode) },
  { weight: 15, arbitrary: fc.uint8Array({ maxLength: 300 }) },
  { weight: 10, arbitrary: nested.map(encode) },
  { weight: 5, arbitrary: fc.string({ unit: "binary" }).map(encode) },
  { weight: 1, arbitrary: large.map(encode) },
);

const request = fc.record({
  body,
  headers: hostileHeaders,
  signature: fc.oneof(
    { weight: 4, arbitrary: fc.constant("right") },
    fc.constant("none"),
    fc.constant("another key's"),
    fc.constant("twice"),
    fc.base64String(),
    fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)) }),
  ),
  contentLength: fc.oneof(
    { weight: 20, arbitrary: fc.constant(null) },
    fc.integer({ min: -1, max: 1_000_000 }).map(String),
    fc.constantFrom("1e9", "0x10", "many"),
  ),
  chunked: fc.nat({ max: 4 }).map((n) => n === 0),
  lenient: fc.boolean(),
});
type Sent = typeof request extends fc.Arbitrary<infer T> ? T : never;

function requestOf(sent: Sent): Request {
  const headers = new Headers();
  for (const [name, value] of sent.headers) headers.append(name, value);
  if (sent.contentLength !== null) headers.set("content-length", sent.contentLength);
  const right = createHmac("sha256", CONSUMER_KEY).update(sent.body).digest("base64");
  if (sent.signature === "right") headers.set("signature", right);
  else if (sent.signature === "twice") headers.set("signature", `${right}, ${right}`);
  else if (sent.signature === "another key's") {
    headers.set("signature", createHmac("sha256", "another").update(sent.body).digest("base64"));
  } else if (sent.signature !== "none") headers.set("signature", sent.signature);
  // Node wants `duplex` for a streamed body; the DOM types do not know it.
  const init: RequestInit & { duplex: "half" } = {
    method: "POST",
    headers,
    duplex: "half",
    body: sent.chunked ? streamOf(sent.body) : Buffer.from(sent.body),
  };
  return new Request("https://app.example.com/api/snaptrade/webhook", init);
}

function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.byteLength) return controller.close();
      controller.enqueue(bytes.slice(at, at + 16_384));
      at += 16_384;
    },
  });
}

/** The status that the request deserves, told without the code under test. */
function expectedStatus(sent: Sent, headers: Headers): number {
  if (Number(headers.get("content-length")) > LIMIT || sent.body.byteLength > LIMIT) return 413;
  const value = objectIn(sent.body);
  if (value === undefined) return 400;
  if (sent.signature === "right") return 200;
  const isSecret = Object.hasOwn(value, "webhookSecret") && Reflect.get(value, "webhookSecret") === WEBHOOK_SECRET;
  return sent.lenient && isSecret && !headers.has("signature") ? 200 : 401;
}

function objectIn(bytes: Uint8Array): object | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = Buffer.from(bytes).toString("utf8");
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject && depthOf(text) <= MAX_DEPTH ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The deepest nesting of a JSON text. */
function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (const bracket of json.replace(/"(?:[^"\\]|\\.)*"/g, "").replace(/[^[\]{}]/g, "")) {
    depth += bracket === "[" || bracket === "{" ? 1 : -1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

const accepted = z.strictObject({
  outcome: z.enum(["accepted", "ignored", "expired", "unroutable"]),
  webhookId: z.string().regex(ID),
  jobId: z.string().optional(),
});
const refusal = z.strictObject({
  level: z.literal("warn"),
  time: z.string(),
  status: z.number(),
  reason: z.string(),
  msg: z.literal("Webhook refused"),
});

test("whatever is posted: the status it deserves, no error line, no call before authentication (I9), no odd key", async () => {
  await fc.assert(
    fc.asyncProperty(request, async (sent) => {
      const { service, calls, lines, reset } = sent.lenient ? lenient : strict;
      reset();
      const given = requestOf(sent);
      const status = expectedStatus(sent, given.headers);
      const after: Promise<void>[] = [];
      const response = await handled(service, (s, r) => receiveWebhook(s, r, (task) => void after.push(task())), given);
      await Promise.all(after);
      const answer: unknown = await response.json();

      expect(response.status).toBe(status);
      expect(response.headers.get("cache-control")).toBe("no-store");
      for (const line of lines) expect(line.indexOf("\n")).toBe(line.length - 1);
      const logged = lines.map((line) => JSON.parse(line));
      expect(logged.filter(({ level }) => level === "error")).toEqual([]);
      if (status === 200) {
        accepted.parse(answer);
        for (const id of idsIn(calls)) expect(id).toMatch(ID);
      } else {
        expect(calls).toEqual([]);
        z.tuple([refusal]).parse(logged);
      }
      expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
    }),
    fuzzRuns(),
  );
}, 600_000);

/** Ids that became part of a Redis key. */
function idsIn(calls: { name: string; given: unknown[] }[]): string[] {
  const claim = z.object({ webhookId: z.string(), key: z.object({ accountId: z.string() }).nullable() });
  return calls
    .filter(({ name }) => name === "guards.claimWebhook" || name === "guards.settleWebhook")
    .flatMap(({ given }) => {
      const { webhookId, key } = claim.parse(given[0]);
      return key === null ? [webhookId] : [webhookId, key.accountId];
    });
}
