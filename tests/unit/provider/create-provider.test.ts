import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ProviderOptions } from "@/lib/provider/create-provider";
import type { Answer, Provider } from "@/lib/provider/provider";
import {
  type FakeServer,
  noDeadline,
  providerAt,
  sendJson,
  startFakeServer,
  USER,
} from "@/tests/unit/provider/fake-server";
import {
  ACCOUNT,
  ACTIVITY,
  activities,
  BALANCE,
  CONNECTION,
  ORDER,
  positions,
  STOCK,
} from "@/tests/unit/provider/wire-examples";

let server: FakeServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
  vi.restoreAllMocks();
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

type Call = (provider: Provider) => Promise<Answer<unknown>>;
const QUERY = { startDate: "2026-11-01", endDate: "2026-11-29", offset: 0, limit: 1000 };
const CALLS: [string, string, string, Call][] = [
  ["connections", "/authorizations", `[${CONNECTION}]`, (p) => p.listConnections(USER, signal)],
  ["accounts", "/accounts", `[${ACCOUNT}]`, (p) => p.listAccounts(USER, signal)],
  ["account", "/accounts/acct-1", ACCOUNT, (p) => p.readAccount(USER, "acct-1", signal)],
  ["balances", "/accounts/acct-1/balances", `[${BALANCE}]`, (p) => p.readBalances(USER, "acct-1", signal)],
  ["positions", "/accounts/acct-1/positions/all", positions(STOCK), (p) => p.readPositions(USER, "acct-1", signal)],
  ["orders", "/accounts/acct-1/orders", `[${ORDER}]`, (p) => p.readOrders(USER, "acct-1", signal)],
  [
    "activities",
    "/accounts/acct-1/activities",
    activities([ACTIVITY]),
    (p) => p.readActivities(USER, "acct-1", QUERY, signal),
  ],
];

describe.each(CALLS)("%s", (_, path, body, call) => {
  test("is one signed GET, read whole, with what it said about limits", async () => {
    const { provider, requests } = await serve((_, response) => sendJson(response, 200, body, LIMITS));
    expect(await call(provider)).toEqual({
      kind: "ok",
      status: 200,
      value: expect.anything(),
      limits: { limit: 250, remaining: 249, resetSeconds: 60 },
    });
    expect(requests).toHaveLength(1);
    const url = new URL(requests[0]?.url ?? "", "http://host");
    expect(requests[0]?.method).toBe("GET");
    expect(url.pathname).toBe(path);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({ clientId: "CLIENT", ...USER });
    expect(requests[0]?.headers.signature).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  });

  test("B92: an error, whatever its body, is never data", async () => {
    let status = 0;
    const { provider } = await serve((_, response) => sendJson(response, status, body));
    for (status of [500, 502, 503, 425, 401, 403, 404, 410, 429, 501, 204, 302]) {
      expect((await call(provider)).kind, String(status)).not.toBe("ok");
    }
  });

  test("B92: a body that is cut, empty, a page or not JSON is never data", async () => {
    const half = body.slice(0, body.length / 2);
    const answers: ((response: ServerResponse) => void)[] = [
      (response) => sendJson(response, 200, half),
      (response) => sendJson(response, 200, ""),
      (response) => sendJson(response, 200, "<!DOCTYPE html><html></html>"),
      (response) => sendJson(response, 200, `${body}}`),
      (response) => {
        response.writeHead(200, { "Content-Length": String(body.length + 1) });
        response.write(body, () => response.destroy());
      },
      (response) => {
        response.writeHead(200);
        response.write(body, () => response.destroy());
      },
      (response) => response.destroy(),
    ];
    let answer = answers[0];
    const { provider } = await serve((_, response) => answer?.(response));
    for (answer of answers) expect(await call(provider)).toMatchObject({ kind: "failed" });
  });
});

test("activities are asked for by day, page and size; orders of every state", async () => {
  const { provider, requests } = await serve((_, response) => sendJson(response, 200, "[]"));
  await provider.readActivities(USER, "acct-1", { ...QUERY, offset: 1000 }, signal);
  await provider.readActivities(USER, "acct-1", { endDate: "2026-11-29", offset: 0, limit: 10 }, signal);
  await provider.readOrders(USER, "acct-1", signal);
  const [first, second, orders] = requests.map(({ url }) => new URL(url ?? "", "http://host").searchParams);
  expect(first?.toString()).toContain("startDate=2026-11-01&endDate=2026-11-29&offset=1000&limit=1000");
  expect(second?.has("startDate")).toBe(false);
  expect(orders?.get("state")).toBe("all");
});

test("B81: numbers reach the caller as the wire spelt them", async () => {
  const cash = ["0.123456789012345678", "1e-8", "100.0", "12.50"];
  const body = cash.map((number, index) => `{"currency":"C${index}","cash":${number},"buying_power":"${number}"}`);
  const { provider } = await serve((_, response) => sendJson(response, 200, `[${body.join(",")}]`));
  const answer = await provider.readBalances(USER, "acct-1", signal);
  const values = answer.kind === "ok" ? answer.value : [];
  expect(values.map((balance) => [balance.cash, balance.buyingPower])).toEqual(cash.map((number) => [number, number]));
});

describe("a 429 is answered at once, by one request", () => {
  const SDK_SLEEPS_MS = [5_000, 10_000, 20_000];

  test.each<[string, (response: ServerResponse) => void]>([
    ["with its whole body", (response) => sendJson(response, 429, '{"code":"0000"}', { "Retry-After": "7" })],
    [
      "with a body that is cut off",
      (response) => {
        response.writeHead(429, { "Retry-After": "7", "Content-Length": "100" });
        response.write('{"det', () => response.destroy());
      },
    ],
    [
      "with a body that never ends",
      (response) => {
        response.writeHead(429, { "Retry-After": "7" });
        response.write('{"det');
      },
    ],
  ])("%s", async (_, answer) => {
    const log = vi.spyOn(console, "log");
    const timer = vi.spyOn(globalThis, "setTimeout");
    const { provider, requests } = await serve((_, response) => answer(response), { requestTimeoutMs: 2_000 });
    expect(await provider.readBalances(USER, "acct-1", signal)).toEqual({
      kind: "throttled",
      scope: "client",
      retryAfterMs: 7_000,
      limits: {},
      status: 429,
    });
    expect(timer.mock.calls.filter(([, ms]) => SDK_SLEEPS_MS.includes(ms ?? 0))).toEqual([]);
    expect(requests).toHaveLength(1);
    expect(log).not.toHaveBeenCalled();
  });
});

test("nobody listens: a failed attempt that names the fault", async () => {
  const { provider } = await serve(() => {});
  await server?.close();
  expect(await provider.readBalances(USER, "acct-1", signal)).toEqual({
    kind: "failed",
    status: 0,
    reason: "ECONNREFUSED",
    limits: {},
  });
});

test("a body that is not UTF-8 is no data", async () => {
  const body = Buffer.from(`[${BALANCE.replace("US Dollar", "\u00ff")}]`, "latin1");
  const { provider } = await serve((_, response) => response.end(body));
  expect(await provider.readBalances(USER, "acct-1", signal)).toMatchObject({
    kind: "failed",
    reason: "body is not UTF-8",
  });
});

test("I10: a redirect is not followed, for the secret would go with it", async () => {
  const { provider, requests } = await serve((_, response) => {
    response.writeHead(requests.length === 1 ? 307 : 200, { Location: "/elsewhere" });
    response.end("[]");
  });
  expect(await provider.readBalances(USER, "acct-1", signal)).toMatchObject({ kind: "failed", status: 307 });
  expect(requests).toHaveLength(1);
});

test.each(["", ".", ".."])("the account id %j would lead to another endpoint, so it is not asked for", async (id) => {
  const { provider, requests } = await serve((_, response) => sendJson(response, 200, "[]"));
  expect(await provider.readBalances(USER, id, signal)).toMatchObject({ kind: "refused" });
  expect(requests).toHaveLength(0);
});

test("an account id stays one segment of the path", async () => {
  const { provider, requests } = await serve((_, response) => sendJson(response, 404, ""));
  await provider.readBalances(USER, "../a/b?c#d$&", signal);
  expect(requests[0]?.url).toMatch(/^\/accounts\/\.\.%2Fa%2Fb%3Fc%23d%24%26\/balances\?/);
});

test("calls one after another share a connection", async () => {
  const ports: (number | undefined)[] = [];
  const { provider } = await serve((request, response) => {
    ports.push(request.socket.remotePort);
    sendJson(response, 200, "[]");
  });
  await provider.readBalances(USER, "acct-1", signal);
  await provider.readOrders(USER, "acct-1", signal);
  expect(ports).toEqual([expect.any(Number), ports[0]]);
});
