import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { SignJWT } from "jose";
import { afterEach, describe, expect, test, vi } from "vitest";
import { verifyQStash } from "@/lib/http/qstash-auth";

const CURRENT = "sig_current_key_of_this_test";
const NEXT = "sig_next_key_of_this_test";
const URL_OF_HOLDINGS = "https://app.example.com/api/internal/process-snaptrade-holdings-sync";
const URL_OF_TRANSACTIONS = "https://app.example.com/api/internal/process-snaptrade-transactions-sync";
const BODY = '{"jobId":"7","workType":"holdings","accountId":"a-1","delivery":1}';

type Token = {
  key?: string;
  alg?: string;
  iss?: string;
  sub?: string;
  exp?: number | null;
  nbf?: number | null;
  body?: string | null;
  hash?: string;
};

/** A token as QStash makes it, but for what the case changes; times are seconds from now. */
async function sign({
  key = CURRENT,
  alg = "HS256",
  iss = "Upstash",
  sub = URL_OF_HOLDINGS,
  exp = 300,
  nbf = 0,
  body = BODY,
  hash,
}: Token = {}) {
  const now = Math.floor(Date.now() / 1000);
  const digest = createHash("sha256")
    .update(body ?? "")
    .digest("base64url");
  const claims = { iss, sub, iat: now, jti: "jwt_1", ...(body === null ? {} : { body: hash ?? digest }) };
  const times = { ...(exp === null ? {} : { exp: now + exp }), ...(nbf === null ? {} : { nbf: now + nbf }) };
  return new SignJWT({ ...claims, ...times })
    .setProtectedHeader({ alg, typ: "JWT" })
    .sign(new TextEncoder().encode(key));
}

function check(signature: string | null, body: BodyInit = BODY, url = URL_OF_HOLDINGS) {
  const headers: Record<string, string> = signature === null ? {} : { "Upstash-Signature": signature };
  const request = new Request("http://10.0.0.1:3000/elsewhere?x=1", { method: "POST", body, headers });
  return verifyQStash(request, { url, currentSigningKey: CURRENT, nextSigningKey: NEXT });
}

const refused = { kind: "unauthorized", reason: "invalid signature" };

afterEach(() => {
  vi.unstubAllEnvs();
});

test.each<[string, Token]>([
  ["the current key", {}],
  ["the next key", { key: NEXT }],
  ["nbf two seconds ahead", { nbf: 2 }],
  ["nbf 0", { nbf: -Math.floor(Date.now() / 1000) }],
  ["no nbf", { nbf: null }],
  ["exp three seconds ago", { exp: -3 }],
  [
    "a padded body hash",
    { hash: createHash("sha256").update(BODY).digest("base64").replaceAll("+", "-").replaceAll("/", "_") },
  ],
])("a genuine delivery with %s is let in, whatever URL it came through", async (_, token) => {
  expect(await check(await sign(token))).toEqual({ kind: "ok", text: BODY });
});

test.each<[string, Token]>([
  ["another key", { key: "sig_another_key" }],
  ["another route of ours (B48)", { sub: URL_OF_TRANSACTIONS }],
  ["a trailing slash", { sub: `${URL_OF_HOLDINGS}/` }],
  ["another scheme", { sub: URL_OF_HOLDINGS.replace("https", "http") }],
  ["another issuer", { iss: "Somebody" }],
  ["exp ten seconds ago", { exp: -10 }],
  ["nbf a minute ahead", { nbf: 60 }],
  ["no exp", { exp: null }],
  ["neither exp nor nbf", { exp: null, nbf: null }],
  ["no body claim", { body: null }],
  ["the hash of another body", { body: `${BODY} ` }],
  ["another algorithm under the right key", { alg: "HS512" }],
])("a token for %s is a value, not an exception (B49)", async (_, token) => {
  expect(await check(await sign(token))).toEqual(refused);
});

test("a body that was serialised anew does not count", async () => {
  expect(await check(await sign(), JSON.stringify(JSON.parse(BODY), null, 1))).toEqual(refused);
});

test.each(["x", "a.b.c", "..", "Bearer x", "x".repeat(10_000)])(
  "garbage for a signature is refused: %.20s",
  async (signature) => {
    expect(await check(signature)).toEqual(refused);
  },
);

test("a token without an algorithm is refused", async () => {
  const [, claims] = (await sign()).split(".");
  const header = Buffer.from('{"alg":"none","typ":"JWT"}').toString("base64url");
  expect(await check(`${header}.${claims}.`)).toEqual(refused);
});

test.each([null, ""])("without a signature (%j) the body is not even read", async (signature) => {
  let pulled = 0;
  const body = new ReadableStream(
    {
      pull() {
        pulled += 1;
      },
    },
    { highWaterMark: 0 },
  );
  const init: RequestInit & { duplex: "half" } = { method: "POST", body, duplex: "half" };
  if (signature !== null) init.headers = { "Upstash-Signature": signature };
  const result = await verifyQStash(new Request("http://service.test/", init), {
    url: URL_OF_HOLDINGS,
    currentSigningKey: CURRENT,
    nextSigningKey: NEXT,
  });
  expect(result).toEqual({ kind: "unauthorized", reason: "no signature" });
  expect(pulled).toBe(0);
});

test.each<[string, BodyInit]>([
  ["not UTF-8", Uint8Array.of(0x7b, 0xff, 0x7d)],
  ["too large", "x".repeat(1024 * 1024 + 1)],
])("a body that is %s is refused", async (_, body) => {
  expect(await check(await sign(), body)).toEqual({ kind: "unauthorized", reason: "unreadable body" });
});

describe("development mode", () => {
  const source = readFileSync("node_modules/@upstash/qstash/index.js", "utf8");
  const publicKeys = [...new Set(source.match(/sig_[A-Za-z0-9]{20,}/g))];

  test("the public keys of the client package open nothing, even with QSTASH_DEV set (B55)", async () => {
    vi.stubEnv("QSTASH_DEV", "true");
    expect(publicKeys).toHaveLength(2);
    for (const key of publicKeys) expect(await check(await sign({ key }))).toEqual(refused);
    expect(await check(await sign())).toEqual({ kind: "ok", text: BODY });
  });
});
