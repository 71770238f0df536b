import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type JWTHeaderParameters, SignJWT } from "jose";
import { afterEach, describe, expect, test, vi } from "vitest";
import { receiveSweepPage } from "@/lib/http/receive-cron";
import type { Handler } from "@/lib/http/route";
import { FAILURE_PATH, SWEEP_PATH, workerPath } from "@/lib/jobs/publisher";
import { receiveDelivery } from "@/lib/jobs/receive-delivery";
import { receiveFailedMessage } from "@/lib/jobs/receive-failed-message";
import { APP_URL, CONSUMER_KEY, CRON_SECRET, countingService, SIGNING_KEYS } from "@/tests/fuzz/counting-service";

const { service, calls, reset } = countingService({
  guards: {
    claimAccountLock: async () => ({ kind: "go", calls: 3, limit: 250, reserved: false, slotAt: 0 }),
    findSlots: async () => [],
    releaseAccountLock: async () => [],
  },
  store: {
    begin: async () => ({ outcome: "unknown" }),
    republishFailed: async () => ({ outcome: "overtaken" }),
    listStale: async () => ({ current: false }),
  },
});

const JOB = (workType: string) =>
  JSON.stringify({ jobId: "b3a1e0c2-5d7f-4f0e-9d57-0f6a3c1b2d4e", workType, accountId: "acct-1", delivery: 1 });
/** Each route of QStash's, with a message that it would act on. */
const ROUTES: [string, Handler, string][] = [
  [workerPath("holdings"), (s, request) => receiveDelivery(s, "holdings", request), JOB("holdings")],
  [workerPath("transactions"), (s, request) => receiveDelivery(s, "transactions", request), JOB("transactions")],
  [FAILURE_PATH, receiveFailedMessage, JSON.stringify({ sourceBody: Buffer.from(JOB("holdings")).toString("base64") })],
  [SWEEP_PATH, receiveSweepPage, JSON.stringify({ sweepId: "sweep-1", page: 0, cursor: null })],
];

type Forgery = {
  key?: string;
  header?: JWTHeaderParameters;
  claims?: Record<string, unknown>;
  /** Another route's destination, instead of this one's. */
  url?: (path: string) => string;
  body?: string;
  headers?: Record<string, string>;
  /** What becomes of the finished token. */
  edit?: (token: string) => string;
};

async function tokenOf(path: string, body: string, forgery: Forgery): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: "Upstash",
    sub: forgery.url?.(path) ?? `${APP_URL}${path}`,
    iat: now,
    nbf: now,
    exp: now + 300,
    jti: "jwt_1",
    body: createHash("sha256")
      .update(forgery.body ?? body)
      .digest("base64url"),
    ...forgery.claims,
  };
  const token = await new SignJWT(claims)
    .setProtectedHeader(forgery.header ?? { alg: "HS256", typ: "JWT" })
    .sign(new TextEncoder().encode(forgery.key ?? SIGNING_KEYS.current));
  return forgery.edit?.(token) ?? token;
}

async function send([path, handle, body]: (typeof ROUTES)[number], forgery: Forgery = {}): Promise<number> {
  reset();
  const headers = { "upstash-signature": await tokenOf(path, body, forgery), ...forgery.headers };
  const response = await handle(service, new Request(`${APP_URL}${path}`, { method: "POST", headers, body }));
  return response.status;
}

afterEach(() => {
  vi.unstubAllEnvs();
});

const now = () => Math.floor(Date.now() / 1000);
const withHeader = (token: string, header: object) => {
  const [, claims, signature] = token.split(".");
  return [Buffer.from(JSON.stringify(header)).toString("base64url"), claims, signature].join(".");
};
const others = ROUTES.map(([path]) => path);

const FORGERIES: Record<string, Forgery> = {
  "alg none, signed all the same": { edit: (token) => withHeader(token, { alg: "none", typ: "JWT" }) },
  "alg none, without a signature": {
    edit: (token) => `${withHeader(token, { alg: "none", typ: "JWT" }).split(".").slice(0, 2).join(".")}.`,
  },
  "alg nOnE": { edit: (token) => withHeader(token, { alg: "nOnE" }) },
  "alg RS256 over the same bytes": { edit: (token) => withHeader(token, { alg: "RS256" }) },
  "alg HS512 under the right key": { header: { alg: "HS512" } },
  "a key that the header brings": {
    key: "of-the-forger",
    header: { alg: "HS256", kid: "../../dev/null", jwk: { kty: "oct" } },
  },
  "an empty key": { key: "\0" },
  "the cron's secret for a key": { key: CRON_SECRET },
  "SnapTrade's key for a key": { key: CONSUMER_KEY },
  "another issuer": { claims: { iss: "upstash" } },
  "no issuer": { claims: { iss: undefined } },
  "a list of issuers": { claims: { iss: ["Upstash"] } },
  expired: { claims: { exp: now() - 60 } },
  "without an end": { claims: { exp: undefined } },
  "an end that is a text": { claims: { exp: "9999999999" } },
  "not valid yet": { claims: { nbf: now() + 60 } },
  "no destination": { claims: { sub: undefined } },
  "a list of destinations": { claims: { sub: others.map((path) => `${APP_URL}${path}`) } },
  "another host": {
    url: (path) => `https://evil.example.com${path}`,
    headers: { "x-forwarded-host": "evil.example.com" },
  },
  "another scheme": { url: (path) => `${APP_URL.replace("https", "http")}${path}` },
  "a query": { url: (path) => `${APP_URL}${path}?x=1` },
  "a slash at its end": { url: (path) => `${APP_URL}${path}/` },
  "dots in its path": { url: (path) => `${APP_URL}/x/..${path}` },
  "a route of ours that is not this one": {
    url: (path) => `${APP_URL}${others[(others.indexOf(path) + 1) % others.length]}`,
  },
  "another body": { body: "{}" },
  "no body": { claims: { body: undefined } },
  "the body itself for its digest": { claims: { body: "{}" } },
  "a second token behind it": { edit: (token) => `${token}, ${token}` },
  "a part more": { edit: (token) => `${token}.e30` },
  "another region's name": { key: "sig_region", headers: { "upstash-region": "US-EAST-1" } },
};

describe.each(ROUTES)("%s", (...route) => {
  test("acts on what QStash signed, with either key", async () => {
    for (const key of [SIGNING_KEYS.current, SIGNING_KEYS.next]) {
      expect(await send(route, { key })).toBe(200);
      expect(calls.length).toBeGreaterThan(0);
    }
  });

  test.each(Object.entries(FORGERIES))("refuses a token with %s, and asks nobody", async (_, forgery) => {
    vi.stubEnv("US_EAST_1_QSTASH_CURRENT_SIGNING_KEY", "sig_region");
    vi.stubEnv("US_EAST_1_QSTASH_NEXT_SIGNING_KEY", "sig_region");
    vi.stubEnv("QSTASH_REGION", "US_EAST_1");
    expect(await send(route, forgery)).toBe(401);
    expect(calls).toEqual([]);
  });

  test.each([
    { QSTASH_DEV: "true" },
    { QSTASH_DEV: "1", NODE_ENV: "development", QSTASH_URL: "http://127.0.0.1:8080" },
    { NODE_ENV: "test", VERCEL_ENV: "development", QSTASH_CURRENT_SIGNING_KEY: "sig_forger" },
  ])("is not opened by an environment of development: %j", async (variables) => {
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    const client = readFileSync("node_modules/@upstash/qstash/index.js", "utf8");
    const publicKeys = [...new Set(client.match(/sig_[A-Za-z0-9]{20,}/g))];
    expect(publicKeys).toHaveLength(2);
    for (const key of [...publicKeys, "sig_forger"]) expect(await send(route, { key })).toBe(401);
    expect(calls).toEqual([]);
    expect(await send(route)).toBe(200);
  });
});
