import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { redact } from "@/lib/provider/redact";
import {
  CONSUMER_KEY,
  type FakeServer,
  noDeadline,
  providerAt,
  SECRET_MARKER,
  sendJson,
  startFakeServer,
  USER,
} from "@/tests/unit/provider/fake-server";

/** Every spelling in which the marker, the key or the query could leave. */
const FORBIDDEN = [
  SECRET_MARKER,
  encodeURIComponent(SECRET_MARKER),
  new URLSearchParams({ v: SECRET_MARKER }).toString().slice(2),
  "s3cr3t-marker",
  CONSUMER_KEY,
  "userSecret",
  "127.0.0.1",
  "timestamp=",
];

const echo = (request: IncomingMessage) => `http://127.0.0.1${request.url} ${SECRET_MARKER} ${CONSUMER_KEY}`;

/** The server does its worst: it writes the request's URL and the secrets into everything it says. */
const ANSWERS: [string, (request: IncomingMessage, response: ServerResponse) => void][] = [
  ...[400, 401, 402, 403, 404, 410, 425, 429, 500, 501, 503].map((status): (typeof ANSWERS)[number] => [
    `${status} with the request in its detail`,
    (request, response) => {
      const headers = { "Retry-After": `${request.url}`, "X-RateLimit-Reset": encodeURI(SECRET_MARKER) };
      sendJson(response, status, JSON.stringify({ detail: echo(request), code: SECRET_MARKER }), headers);
    },
  ]),
  ["a page that quotes the URL", (request, response) => sendJson(response, 500, `<html>${echo(request)}</html>`)],
  [
    "a detail cut in the middle of the secret",
    (_, response) => sendJson(response, 410, JSON.stringify({ detail: `${"x".repeat(275)}${SECRET_MARKER}` })),
  ],
  [
    "a redirect to elsewhere",
    (request, response) => {
      response.writeHead(302, { Location: `http://127.0.0.1:1${request.url}` });
      response.end();
    },
  ],
  ["text that is not JSON", (request, response) => sendJson(response, 200, echo(request))],
  [
    "a key that comes twice",
    (request, response) =>
      sendJson(response, 200, `{${JSON.stringify(echo(request))}:1,${JSON.stringify(echo(request))}:2}`),
  ],
  [
    "a value of the wrong type",
    (request, response) => sendJson(response, 200, JSON.stringify([{ currency: "USD", cash: echo(request) }])),
  ],
  ["no answer", () => {}],
  ["a reset", (_, response) => response.destroy()],
  [
    "a cut body",
    (_, response) => {
      response.writeHead(200, { "Content-Length": "10" });
      response.write("[", () => response.destroy());
    },
  ],
];

let server: FakeServer;
const written: string[] = [];

beforeEach(() => {
  written.length = 0;
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((chunk) => written.push(String(chunk)) > 0);
  }
  for (const method of ["log", "info", "warn", "error", "debug"] as const) {
    vi.spyOn(console, method).mockImplementation((...args) => void written.push(args.map(String).join(" ")));
  }
});
afterEach(async () => {
  vi.restoreAllMocks();
  await server.close();
});

describe("I10: neither the secret nor the URL that carries it leaves the client", () => {
  test.each(ANSWERS)("%s", async (name, answer) => {
    server = await startFakeServer(answer);
    const provider = providerAt(server.url, name === "no answer" ? { requestTimeoutMs: 1_000 } : {});
    const result = await provider.readBalances(USER, "acct-1", noDeadline());
    expect(server.requests[0]?.url).toContain("userSecret=s3cr3t-marker");
    expect(server.requests).toHaveLength(1);
    expect(result.kind).not.toBe("ok");
    const said = JSON.stringify(result) + written.join("\n");
    for (const secret of FORBIDDEN) expect(said).not.toContain(secret);
  });

  test("nobody listens", async () => {
    server = await startFakeServer(() => {});
    await server.close();
    const result = await providerAt(server.url).readBalances(USER, "acct-1", noDeadline());
    expect(result).toMatchObject({ kind: "failed", status: 0 });
    for (const secret of FORBIDDEN) expect(JSON.stringify(result)).not.toContain(secret);
  });

  test("a base URL that is none", async () => {
    server = await startFakeServer(() => {});
    const result = await providerAt("not a url").readBalances(USER, "acct-1", noDeadline());
    expect(result).toMatchObject({ kind: "failed", status: 0 });
    for (const secret of FORBIDDEN) expect(JSON.stringify(result)).not.toContain(secret);
  });
});

test("what remains of a reason is readable", async () => {
  server = await startFakeServer(() => {});
  expect(redact("Bad user a b, see https://x.test/p?userSecret=1 or /p?a=b now", ["a b", ""])).toBe(
    "Bad user [secret], see [url] or [url] now",
  );
});

test("no text that the other side chose holds the process up", () => {
  const worst = ["?".repeat(2000), "a?".repeat(1000), "://".repeat(700), "a://".repeat(500), "=?".repeat(100_000)];
  for (const text of worst) expect(redact(text, ["secret"]).length).toBeLessThanOrEqual(300);
}, 5_000);

test("no beginning of a secret is left where a text is cut", () => {
  for (let before = 1950; before <= 2010; before += 1) {
    expect(redact(`x?=${"y".repeat(before)} ${SECRET_MARKER}`, [SECRET_MARKER])).not.toContain("s3cr3t");
  }
});

test.each([
  ["a pair that the shortening cuts", `${"x".repeat(299)}\u{1f600}`, `${"x".repeat(299)}\ufffd`],
  ["half a pair", "gone \ud83d", "gone \ufffd"],
  ["a zero character", "gone\u0000", "gone "],
])("what is kept of a reason is text that Postgres takes: %s", (_, sent, kept) => {
  expect(redact(sent, [])).toBe(kept);
});
