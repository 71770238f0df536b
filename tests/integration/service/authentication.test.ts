import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import type { LoggerOptions } from "@/lib/log";
import { Signer, type ToSign } from "@/sandbox/qstash/signer";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { type LocalStack, startLocalStack } from "@/tests/support/local-stack";

const APP_URL = "https://app.example.com";

/** What the routes log, in place of standard output. */
const { lines } = vi.hoisted(() => ({ lines: [] as string[] }));
vi.mock("@/lib/log", async (original) => {
  const log = await original<typeof import("@/lib/log")>();
  const destination = { write: (line: string) => void lines.push(line) };
  return { ...log, createLogger: (options: LoggerOptions) => log.createLogger({ ...options, destination }) };
});

/** Who may call each route, and with what. A route that is not listed here fails the first test. */
const ROUTES = {
  "/api/snaptrade/webhook": { method: "POST", credentials: "signature", maxDuration: 15 },
  "/api/internal/process-snaptrade-holdings-sync": { method: "POST", credentials: "qstash", maxDuration: 60 },
  "/api/internal/process-snaptrade-transactions-sync": { method: "POST", credentials: "qstash", maxDuration: 60 },
  "/api/internal/snaptrade-sync-failed": { method: "POST", credentials: "qstash", maxDuration: 60 },
  "/api/cron/process-stale-snaptrade": { method: "POST", credentials: "qstash", maxDuration: 60 },
  "/api/cron/schedule-stale-snaptrade": { method: "GET", credentials: "bearer", maxDuration: 60 },
  "/api/cron/reconcile-snaptrade": { method: "GET", credentials: "bearer", maxDuration: 60 },
  "/api/metrics": { method: "GET", credentials: "bearer", maxDuration: 60 },
  "/api/health": { method: "GET", credentials: "bearer or less", maxDuration: 60 },
} as const;
type Path = keyof typeof ROUTES;
const PATHS = Object.keys(ROUTES).filter((path): path is Path => path in ROUTES);
const withCredentials = (...kinds: string[]) => PATHS.filter((path) => kinds.includes(ROUTES[path].credentials));

const handler = z.custom<(request: Request) => Promise<Response>>((value) => typeof value === "function");
const routeModule = z.strictObject({
  runtime: z.literal("nodejs"),
  dynamic: z.literal("force-dynamic"),
  maxDuration: z.number(),
  GET: handler.optional(),
  POST: handler.optional(),
});

let stack: LocalStack<{ qstash: true; snaptrade: { accounts: number } }>;
let signer: Signer;

beforeAll(async () => {
  stack = await startLocalStack({ qstash: true, snaptrade: { accounts: 2 }, appUrl: APP_URL });
  for (const [name, value] of Object.entries(stack.env)) vi.stubEnv(name, value);
  signer = new Signer({
    current: stack.env.QSTASH_CURRENT_SIGNING_KEY ?? "",
    next: stack.env.QSTASH_NEXT_SIGNING_KEY ?? "",
  });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await stack.close();
});

/** The route's own module, over the process's environment: nothing stands between this call and what is deployed. */
async function moduleOf(path: string) {
  return routeModule.parse({ ...(await import(join(process.cwd(), "app", path, "route.ts"))) });
}

async function call(path: Path, headers: Record<string, string>, body?: string): Promise<Response> {
  const { method } = ROUTES[path];
  const handle = (await moduleOf(path))[method];
  if (handle === undefined) throw new Error(`${path} has no ${method}`);
  return handle(new Request(`${APP_URL}${path}`, { method, headers, ...(body === undefined ? {} : { body }) }));
}

function token(path: string, body: string, other: Partial<ToSign> = {}): Promise<string> {
  return signer.sign({ url: `${APP_URL}${path}`, body: Buffer.from(body), key: "current", skewSeconds: 0, ...other });
}

/** What each server of ours has been asked so far. */
function asked(): unknown {
  return {
    redis: stack.redis.requests(),
    supabase: stack.supabase.requests(),
    qstash: stack.qstash.state().requests,
    snaptrade: stack.snaptrade.state().calls.length,
  };
}

async function refused(path: Path, attempts: Record<string, { headers: Record<string, string>; body?: string }>) {
  const before = asked();
  const answers: Record<string, number> = {};
  lines.length = 0;
  for (const [name, { headers, body }] of Object.entries(attempts)) {
    const answer = await call(path, headers, body);
    expect(answer.headers.get("cache-control"), `${path}, ${name}`).toBe("no-store");
    answers[name] = answer.status;
  }
  expect(answers, path).toEqual(Object.fromEntries(Object.keys(attempts).map((name) => [name, 401])));
  expect(asked(), `${path} asked nothing of anybody`).toEqual(before);
  expect(
    lines.filter((line) => /acct-|user-0|secret|Bearer|eyJ/.test(line)),
    "logged of what strangers sent",
  ).toEqual([]);
}

test("every route on disk, wherever it stands, is listed here with who may call it", async () => {
  const files = readdirSync("app", { recursive: true, encoding: "utf8" }).filter((file) => /route\.\w+$/.test(file));
  expect(files.map((file) => `/${file.replace(/\/route\.ts$/, "")}`).sort()).toEqual([...PATHS].sort());
  expect(["pages", "src", "proxy.ts", "middleware.ts"].filter((other) => existsSync(other))).toEqual([]);
});

test.each(PATHS)("%s answers one method, under Node, never from a cache, within its stated time", async (path) => {
  const { method, maxDuration } = ROUTES[path];
  const module = await moduleOf(path);
  expect(Object.keys(module).sort()).toEqual(["dynamic", "maxDuration", method, "runtime"].sort());
  expect(module.maxDuration).toBe(maxDuration);
});

test("no request without a valid signature of SnapTrade gets past the webhook's door (I9)", async () => {
  const fields = {
    webhookId: randomUUID(),
    eventType: "ACCOUNT_HOLDINGS_UPDATED",
    eventTimestamp: new Date().toISOString(),
    accountId: "acct-0000",
    userId: "user-0000",
    webhookSecret: "",
  };
  const { body, signature } = makeWebhook(fields, stack.env.SNAPTRADE_CONSUMER_KEY ?? "");
  const path = "/api/snaptrade/webhook";
  await refused(path, {
    none: { headers: {}, body },
    empty: { headers: { signature: "" }, body },
    "the word undefined": { headers: { signature: "undefined" }, body },
    "another key's": { headers: { signature: makeWebhook(fields, "another-key").signature }, body },
    "an empty key's": { headers: { signature: makeWebhook(fields, "undefined").signature }, body },
    "another body's": { headers: { signature }, body: body.replace("acct-0000", "acct-0001") },
    "cut short": { headers: { signature: signature.slice(0, -2) }, body },
    "in hexadecimal": { headers: { signature: Buffer.from(signature, "base64").toString("hex") }, body },
    "the cron's secret": { headers: { authorization: `Bearer ${stack.env.CRON_SECRET}` }, body },
    "QStash's": { headers: { "upstash-signature": await token(path, body) }, body },
    "the deprecated secret, which is not set": {
      headers: {},
      body: JSON.stringify({ ...fields, webhookSecret: "undefined" }),
    },
  });
  const answer = await call(path, { signature }, body);
  expect([answer.status, await answer.json()]).toMatchObject([200, { outcome: "waiting" }]);
});

test.each(withCredentials("qstash"))(
  "%s takes only what QStash signed for it, this body and this time",
  async (path) => {
    const body = JSON.stringify({ jobId: randomUUID(), workType: "holdings", accountId: "acct-0000", delivery: 1 });
    const others = PATHS.filter((other) => other !== path);
    const asQStash = (signature: string) => ({ headers: { "upstash-signature": signature }, body });
    const fresh = await token(path, body);
    await refused(path, {
      none: { headers: {}, body },
      empty: asQStash(""),
      garbage: asQStash("a.b.c"),
      "no signature part": asQStash(fresh.split(".").slice(0, 2).join(".")),
      "another body": { headers: { "upstash-signature": fresh }, body: body.replace("acct-0000", "acct-0001") },
      expired: asQStash(await token(path, body, { skewSeconds: -310 })),
      "not yet valid": asQStash(await token(path, body, { skewSeconds: 60 })),
      "another host": asQStash(await token(path, body, { url: `https://elsewhere.example.com${path}` })),
      "another key": asQStash(
        await new Signer({ current: "sig_other", next: "sig_other" }).sign({
          url: `${APP_URL}${path}`,
          body: Buffer.from(body),
          key: "current",
          skewSeconds: 0,
        }),
      ),
      "the cron's secret": { headers: { authorization: `Bearer ${stack.env.CRON_SECRET}` }, body },
      ...Object.fromEntries(
        await Promise.all(others.map(async (other) => [`the token of ${other}`, asQStash(await token(other, body))])),
      ),
    });
    const nothingOfOurs = "{}";
    for (const key of ["current", "next"] as const) {
      const signature = await token(path, nothingOfOurs, { key });
      const answer = await call(path, { "upstash-signature": signature }, nothingOfOurs);
      expect([200, 489], `${path}, the ${key} key`).toContain(answer.status);
    }
  },
);

function wrongBearers(): Record<string, { headers: Record<string, string> }> {
  const secret = stack.env.CRON_SECRET ?? "";
  const given = (authorization: string) => ({ headers: { authorization } });
  return {
    none: { headers: {} },
    "Bearer undefined": given("Bearer undefined"),
    "Bearer null": given("Bearer null"),
    "an empty bearer": given("Bearer "),
    wrong: given("Bearer wrong"),
    longer: given(`Bearer ${secret}x`),
    shorter: given(`Bearer ${secret.slice(0, -1)}`),
    "without its scheme": given(secret),
    "another scheme": given(`Basic ${Buffer.from(`:${secret}`).toString("base64")}`),
    "a header that Vercel's crons also carry": { headers: { "user-agent": "vercel-cron/1.0" } },
  };
}

test.each(withCredentials("bearer"))(
  "%s is closed without the cron's secret, and `Bearer undefined` opens nothing",
  async (path) => {
    const signed = { headers: { "upstash-signature": await token(path, "") } };
    await refused(path, { ...wrongBearers(), "QStash's token": signed });
    const answer = await call(path, { authorization: `Bearer ${stack.env.CRON_SECRET}` });
    expect(answer.status).toBe(200);
  },
);

test.each(withCredentials("bearer or less"))("%s tells strangers that it is up, and nothing else", async (path) => {
  const before = asked();
  for (const { headers } of Object.values(wrongBearers())) {
    const answer = await call(path, headers);
    expect([answer.status, await answer.text()]).toEqual([200, '{"status":"up"}']);
    expect(answer.headers.get("cache-control")).toBe("no-store");
  }
  expect(asked()).toEqual(before);
  const answer = await call(path, { authorization: `Bearer ${stack.env.CRON_SECRET}` });
  expect(await answer.json()).toHaveProperty("queued");
  expect(asked()).not.toEqual(before);
});
