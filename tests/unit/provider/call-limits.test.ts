import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import type { ProviderOptions } from "@/lib/provider/create-provider";
import type { Provider } from "@/lib/provider/provider";
import {
  type FakeServer,
  noDeadline,
  providerAt,
  sendJson,
  startFakeServer,
  USER,
} from "@/tests/unit/provider/fake-server";

let server: FakeServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: Partial<ProviderOptions> = {},
): Promise<{ provider: Provider; requests: IncomingMessage[] }> {
  server = await startFakeServer(answer);
  return { provider: providerAt(server.url, options), requests: server.requests };
}

const signal = noDeadline();
const LIMITS = { "X-RateLimit-Limit": "250", "X-RateLimit-Remaining": "249", "X-RateLimit-Reset": "60" };

describe("no call outlives its limits", () => {
  test("a server that never answers is a failed attempt", async () => {
    const { provider } = await serve(() => {}, { requestTimeoutMs: 50 });
    expect(await provider.readBalances(USER, "acct-1", signal)).toEqual({
      kind: "failed",
      status: 0,
      reason: "no whole answer within 50 ms",
      limits: {},
    });
  });

  test("a body that trickles in for ever is a failed attempt", async () => {
    let trickle: NodeJS.Timeout | undefined;
    const { provider } = await serve(
      (_, response) => {
        response.writeHead(200, LIMITS);
        trickle = setInterval(() => response.write("["), 5);
        response.on("close", () => clearInterval(trickle));
      },
      { requestTimeoutMs: 1_000 },
    );
    const answer = await provider.readBalances(USER, "acct-1", signal);
    expect(answer).toMatchObject({ kind: "failed", status: 200, limits: { remaining: 249 } });
    expect(answer).toHaveProperty("reason", expect.stringContaining("within 1000 ms"));
  });

  test("the run's deadline stops a waiting call, and its connection", async () => {
    let closed: Promise<unknown> | undefined;
    const deadline = new AbortController();
    const { provider } = await serve(
      (_, response) => {
        closed = once(response, "close");
        deadline.abort();
      },
      { requestTimeoutMs: 3_600_000 },
    );
    expect(await provider.readBalances(USER, "acct-1", deadline.signal)).toEqual({
      kind: "aborted",
      limits: {},
      status: 0,
    });
    await closed;
    expect(closed).toBeDefined();
  });

  test("after the deadline no request is made", async () => {
    const { provider, requests } = await serve((_, response) => sendJson(response, 200, "[]"));
    expect(await provider.readBalances(USER, "acct-1", AbortSignal.abort())).toMatchObject({ kind: "aborted" });
    expect(requests).toHaveLength(0);
  });

  test("an answer beyond the size limit is not read to its end", async () => {
    const body = `[${" ".repeat(5_000)}]`;
    const { provider } = await serve((_, response) => sendJson(response, 200, body), { maxBodyBytes: 5_001 });
    expect(await provider.readBalances(USER, "acct-1", signal)).toEqual({
      kind: "failed",
      status: 200,
      reason: "body larger than 5001 bytes",
      limits: {},
    });
    const exact = providerAt(server?.url ?? "", { maxBodyBytes: 5_002 });
    expect(await exact.readBalances(USER, "acct-1", signal)).toMatchObject({ kind: "ok", value: [] });
  });

  test("the size limit counts what a compressed body unpacks to", async () => {
    const body = gzipSync(`[${" ".repeat(1_000_000)}]`);
    const answer = (_: IncomingMessage, response: ServerResponse) => {
      response.writeHead(200, { "Content-Encoding": "gzip" });
      response.end(body);
    };
    const { provider } = await serve(answer, { maxBodyBytes: 100_000 });
    expect(await provider.readBalances(USER, "acct-1", signal)).toMatchObject({ kind: "failed" });
    expect(await providerAt(server?.url ?? "").readBalances(USER, "acct-1", signal)).toMatchObject({ kind: "ok" });
  });
});
