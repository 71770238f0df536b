import { createServer, type Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { classifyAnswer, readLimits } from "@/lib/provider/classify-answer";
import type { Answer } from "@/lib/provider/provider";
import { readAccount, readAccounts } from "@/lib/provider/read-accounts";
import { readActivities } from "@/lib/provider/read-activities";
import { readBalances } from "@/lib/provider/read-balances";
import { readConnections } from "@/lib/provider/read-connections";
import { readOrders } from "@/lib/provider/read-orders";
import { readPositions } from "@/lib/provider/read-positions";
import { redact } from "@/lib/provider/redact";
import type { Read } from "@/lib/provider/wire-values";
import { fuzzRuns } from "@/tests/fuzz/runs";
import { answerText } from "@/tests/fuzz/wire";
import { COOLDOWN, NOW, noDeadline, providerAt, SECRET_MARKER, USER } from "@/tests/unit/provider/fake-server";
import { tryRead } from "@/tests/unit/provider/read-with";

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const sizeOf = (value: unknown) => (Array.isArray(value) ? value.length : "no list");
const member = (value: unknown, name: string) => (isRecord(value) ? value[name] : undefined);

/** Each reader, and how many elements the answer holds by JavaScript's own parser: none may be lost or made up (I7). */
const READERS: Record<
  string,
  { read: (json: unknown) => Read<unknown>; size: (value: unknown) => unknown; held: (json: unknown) => unknown }
> = {
  balances: { read: readBalances, size: sizeOf, held: sizeOf },
  orders: { read: readOrders, size: sizeOf, held: sizeOf },
  accounts: { read: readAccounts, size: sizeOf, held: sizeOf },
  connections: { read: readConnections, size: sizeOf, held: sizeOf },
  positions: {
    read: readPositions,
    size: (value) => sizeOf(member(value, "positions")),
    held: (json) => sizeOf(member(json, "results")),
  },
  activities: {
    read: (json) => readActivities(json, 0),
    size: (value) => sizeOf(member(value, "activities")),
    held: (json) => sizeOf(member(json, "data")),
  },
  account: {
    read: (json) => readAccount(json, "acct-1"),
    size: (value) => member(value, "accountId"),
    held: (json) => member(json, "id"),
  },
};

test("I7: whatever text is answered, each reader gives all of its elements or a reason; it never throws", () => {
  const seen = { good: 0, empty: 0, bad: 0 };
  fc.assert(
    fc.property(answerText, (text) => {
      for (const { read, size, held } of Object.values(READERS)) {
        const result = tryRead(read, text);
        if (!result.ok) {
          seen.bad += 1;
          expect(typeof result.reason).toBe("string");
          continue;
        }
        const json: unknown = JSON.parse(text);
        const elements = size(result.value);
        expect(elements).toEqual(held(json));
        if (elements === 0) {
          seen.empty += 1;
          // An empty part is believed only where the answer says that it is whole.
          if (read === readPositions)
            expect(member(member(json, "data_freshness"), "as_of")).toEqual(expect.any(String));
          if (read === READERS.activities?.read) expect(member(member(json, "pagination"), "total")).toBe(0);
        } else seen.good += 1;
      }
    }),
    fuzzRuns(400, 0.2),
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0);
}, 600_000);

const headerText = fc.oneof(
  fc.constantFrom(
    "0",
    "-0",
    "7",
    "1e3",
    "NaN",
    "Infinity",
    "1790000000",
    "Sun, 29 Nov 2026 12:00:09 GMT",
    "Sunday",
    "5, 9",
  ),
  fc.integer().map(String),
  fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 40 }),
);
const HEADER_NAMES = [
  "retry-after",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "x-ratelimit-account-remaining",
  "x-ratelimit-account-reset",
] as const;
const headers = fc.dictionary(fc.constantFrom(...HEADER_NAMES), headerText, { maxKeys: 6, noNullPrototype: true });
const status = fc.oneof(
  fc.constantFrom(200, 201, 204, 302, 400, 401, 402, 403, 404, 410, 425, 429, 429, 429, 500, 501, 503),
  fc.integer({ min: 100, max: 999 }),
);
const errorText = fc.oneof(
  answerText,
  fc
    .record(
      {
        code: fc.oneof(fc.constantFrom<unknown>(3002, "3002", "throttled"), fc.jsonValue()),
        detail: fc.jsonValue(),
        error: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    .map((fields) => JSON.stringify(fields)),
  fc.constantFrom("<html>404</html>", "Expected available in 99999999999999999999 seconds.", "?".repeat(3000)),
);

const KINDS = ["throttled", "busy", "gone", "refused", "unauthorized", "unsupported", "failed"];

test("I6: whatever the status, headers and body, an answer is one of the known kinds, and every wait is bounded", () => {
  fc.assert(
    fc.property(status, headers, errorText, (code, given, body) => {
      const header = (name: string) => (Object.hasOwn(given, name) ? given[name] : undefined);
      const failure = classifyAnswer({ status: code, header, body }, COOLDOWN, () => NOW);
      expect(failure === null).toBe(code === 200);
      if (failure !== null) expect(KINDS).toContain(failure.kind);
      expect(failure?.kind === "throttled").toBe(code === 429);
      if (failure?.kind === "throttled") {
        expect(Number.isInteger(failure.retryAfterMs)).toBe(true);
        expect(failure.retryAfterMs).toBeGreaterThanOrEqual(1_000);
        expect(failure.retryAfterMs).toBeLessThanOrEqual(COOLDOWN.maxMs);
      }
      for (const count of Object.values(readLimits(header)))
        expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
    }),
    fuzzRuns(400, 0.2),
  );
}, 600_000);

const spelling = fc.constantFrom(
  SECRET_MARKER,
  encodeURIComponent(SECRET_MARKER),
  encodeURI(SECRET_MARKER),
  new URLSearchParams({ v: SECRET_MARKER }).toString().slice(2),
);
const piece = fc.oneof(
  spelling,
  fc.constantFrom(" ", "?", "=", "&", "://", "https://", "\n", "y".repeat(290), "y".repeat(1990), "?".repeat(500)),
  fc.string({ maxLength: 20 }),
);

test("I10: no arrangement of secrets, URLs and queries leaves any part of a secret in a reason", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const said = redact(pieces.join(""), [SECRET_MARKER]);
      expect(said.length).toBeLessThanOrEqual(300);
      expect(said).not.toContain("s3cr3t");
    }),
    fuzzRuns(400, 0.2),
  );
}, 600_000);

/** Answers every connection with the bytes that the run has chosen, whatever was asked. */
let answerBytes = Buffer.alloc(0);
let url = "";
const open = new Set<Socket>();
const server = createServer((socket) => {
  open.add(socket);
  socket.on("error", () => undefined);
  socket.on("close", () => open.delete(socket));
  socket.once("data", () => socket.end(answerBytes));
});
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port");
  url = `http://127.0.0.1:${address.port}`;
});
afterAll(() => {
  for (const socket of open) socket.destroy();
  server.close();
});

const httpBytes = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(status, headers, errorText, fc.boolean()).map(([code, given, body, honest]) => {
      const bytes = Buffer.from(body);
      const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}`);
      const length = honest ? bytes.byteLength : bytes.byteLength + 7;
      const head = [`HTTP/1.1 ${code} x`, ...lines, `content-length: ${length}`, "connection: close", "", ""].join(
        "\r\n",
      );
      return Buffer.concat([Buffer.from(head, "latin1"), bytes]);
    }),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => {
      return Buffer.concat([Buffer.from("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), bytes]);
    }),
  },
);

test("whatever bytes come over the wire, every call ends in a value of the closed union, without a secret", async () => {
  const provider = providerAt(url, { requestTimeoutMs: 10_000 });
  const signal = noDeadline();
  const query = { endDate: "2026-11-29", offset: 0, limit: 1000 };
  const calls: (() => Promise<Answer<unknown>>)[] = [
    () => provider.listConnections(USER, signal),
    () => provider.listAccounts(USER, signal),
    () => provider.readAccount(USER, "acct-1", signal),
    () => provider.readBalances(USER, "acct-1", signal),
    () => provider.readPositions(USER, "acct-1", signal),
    () => provider.readOrders(USER, "acct-1", signal),
    () => provider.readActivities(USER, "acct-1", query, signal),
  ];
  await fc.assert(
    fc.asyncProperty(httpBytes, fc.constantFrom(...calls), async (bytes, call) => {
      answerBytes = bytes;
      const answer = await call();
      expect(["ok", ...KINDS]).toContain(answer.kind);
      expect(JSON.stringify(answer)).not.toMatch(/s3cr3t|userSecret|127\.0\.0\.1/);
      if (answer.kind === "ok") expect(bytes.toString("latin1")).toMatch(/^HTTP\/1\.1 200 /);
    }),
    fuzzRuns(150, 0.02),
  );
}, 600_000);
