import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { FAILURE_PATH } from "@/lib/jobs/publisher";
import { StoreError } from "@/lib/store/call-function";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { reconcileTick, startSweep } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

const MARKED = {
  CRON_SECRET: "marked-cron-secret-6f1d",
  SNAPTRADE_WEBHOOK_SECRET: "marked-webhook-secret-1c9e",
  VERCEL_AUTOMATION_BYPASS_SECRET: "marked-bypass-secret-77ab",
};
/** In a body, where nobody has configured it. */
const STRAY = "marked-stray-secret-d41c";
const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";

let driver: Driver;
/** Bodies and headers that callers were answered with. */
const answered: string[] = [];
/** What libraries print past the log: QStash's client warns of each refusal. */
const printed: string[] = [];

beforeAll(async () => {
  for (const method of ["log", "info", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((...said) => void printed.push(said.map(String).join(" ")));
  }
  driver = await driveService({ env: MARKED });
  await liveThroughIt();
}, 120_000);
afterAll(async () => {
  vi.restoreAllMocks();
  await driver.app.close();
});

/** Every secret of the service and of its users, in the spellings in which one could leave. */
function secrets(): string[] {
  const users = driver.stack.snaptrade.users().map(({ userSecret }) => userSecret);
  const all = [...new Set([...driver.service.env.secrets, ...users, ...Object.values(MARKED), STRAY])];
  expect(all.filter((secret) => secret.length < 8)).toEqual([]);
  return all.flatMap((secret) => [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64")]);
}

const secretsIn = (text: string) => [...new Set(secrets().filter((secret) => text.includes(secret)))];

async function ask(path: string, init: RequestInit = {}): Promise<void> {
  const response = await fetch(`${driver.app.url}${path}`, init);
  answered.push(JSON.stringify([...response.headers]), await response.text());
}

/** An event whose body holds secrets, and is answered. */
async function postWithSecrets(accountId: string, fields: Record<string, unknown> = {}): Promise<void> {
  const { env } = driver.service;
  const event = {
    webhookId: randomUUID(),
    eventType: HOLDINGS,
    eventTimestamp: new Date().toISOString(),
    userId: driver.stack.snaptrade.account(accountId)?.userId,
    accountId,
    webhookSecret: STRAY,
    ...fields,
  };
  const { body, signature } = makeWebhook(event, env.snaptrade.consumerKeys[0] ?? "");
  await ask("/api/snaptrade/webhook", { method: "POST", body, headers: { signature } });
}

/** What SnapTrade's side may say at its worst: the request itself, in every place of an answer. */
async function echo(accountId: string, status: number): Promise<void> {
  const { userId = "" } = driver.stack.snaptrade.account(accountId) ?? {};
  const secret = driver.stack.snaptrade.users().find((user) => user.userId === userId)?.userSecret ?? "";
  const said = `https://api.snaptrade.com/accounts?userId=${userId}&userSecret=${secret} ${secret} ${driver.service.env.snaptrade.consumerKeys[0]}`;
  const headers = { "Retry-After": said, "X-RateLimit-Reset": said };
  await driver.fault({ accountId }, { status, headers, body: { detail: said, code: said } }, 1);
}

/** Good and bad days: runs, refusals, outages of each part, dead jobs, a message that QStash gives up, operators' routes. */
async function liveThroughIt(): Promise<void> {
  const { redis, supabase, qstash } = driver.stack;
  for (const status of [400, 402, 403, 404, 429, 500, 503]) {
    const accountId = driver.nextAccount();
    await echo(accountId, status);
    await postWithSecrets(accountId);
    const [job] = await driver.jobs(accountId);
    await driver.deliver(job?.id);
    await driver.redis("DEL", "snaptrade:provider:cooldown");
  }
  const accountId = driver.nextAccount();
  await postWithSecrets(accountId);
  await driver.deliver((await driver.jobs(accountId))[0]?.id);
  for (const fields of [{ eventType: "TEST" }, { eventTimestamp: "soon" }, { accountId: "a:b" }, { userId: "u" }]) {
    await postWithSecrets(accountId, fields);
  }

  supabase.fault({ status: 500, body: { code: "XX000", message: `no ${supabase.secretKey}`, details: "", hint: "" } });
  await postWithSecrets(driver.nextAccount());
  supabase.clearFaults();
  redis.fault({ status: 500, body: { error: `WRONGPASS ${redis.token}` }, times: 2 });
  await postWithSecrets(driver.nextAccount());
  redis.clearFaults();
  qstash.faults.set({ publish: { status: 500 } });
  await postWithSecrets(driver.nextAccount());
  await giveUpAMessage();

  for (const secret of [driver.service.env.cronSecret, "wrong-secret"]) {
    const headers = { Authorization: `Bearer ${secret}` };
    for (const path of ["health", "metrics", "cron/reconcile-snaptrade", "cron/schedule-stale-snaptrade"]) {
      await ask(`/api/${path}?token=${secret}`, { headers });
    }
  }
  await reconcileTick(driver);
  await startSweep(driver);
  await driver.app.settled();
}

/** QStash finds no Redis four times and gives up; its dead letter and its callback stay. */
async function giveUpAMessage(): Promise<void> {
  const { redis, qstash } = driver.stack;
  qstash.faults.set({});
  qstash.clock.setScale(0);
  redis.fault({ outage: true, times: 5 });
  const before = qstash.state().deliveries.length;
  await postWithSecrets(driver.nextAccount());
  const done = () =>
    qstash
      .state()
      .deliveries.slice(before)
      .filter(({ status }) => status !== null);
  for (const tries of [1, 2, 3, 4]) {
    await vi.waitFor(() => expect(done().length).toBeGreaterThanOrEqual(tries), { timeout: 20_000 });
    if (tries < 4) qstash.clock.advance(90_000);
  }
  await vi.waitFor(() => expect(done().some(({ url }) => url.endsWith(FAILURE_PATH))).toBe(true), { timeout: 20_000 });
  redis.clearFaults();
  qstash.faults.set({ publish: { acknowledgeAndLose: true } });
}

test("what was lived through has left its traces: lines, errors, dead jobs, a dead letter", async () => {
  expect(driver.app.log.length).toBeGreaterThan(30);
  expect(new Set(driver.app.log.map(({ level }) => level))).toEqual(new Set(["info", "warn", "error"]));
  const [jobs] =
    await driver.sql`select count(*) filter (where status = 'dead')::int as dead, count(last_error)::int as errors from snaptrade_sync_jobs`;
  expect(jobs?.dead).toBeGreaterThan(0);
  expect(jobs?.errors).toBeGreaterThan(3);
  expect(driver.stack.qstash.state().dlq).toBe(1);
  expect(answered.length).toBeGreaterThan(40);
});

test("no line of the log holds a secret, nor what libraries print past it (I10)", () => {
  expect(printed.join("\n")).toContain("[Upstash QStash]");
  expect(secretsIn(printed.join("\n"))).toEqual([]);
  expect(secretsIn(driver.app.log.map((line) => JSON.stringify(line)).join("\n"))).toEqual([]);
});

test("no answer to anybody holds a secret, in its body or its headers", () => {
  expect(secretsIn(answered.join("\n"))).toEqual([]);
});

test("no row of any table holds a secret in the clear", async () => {
  const tables = await driver.sql<{ name: string }[]>`
    select oid::regclass::text as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`;
  expect(tables.length).toBeGreaterThan(8);
  for (const { name } of tables) {
    const rows = await driver.sql.unsafe(`select t::text as row from ${name} t`);
    expect(secretsIn(rows.map(({ row }) => String(row)).join("\n")), name).toEqual([]);
  }
});

test("no key and no value in Redis holds a secret", async () => {
  const keys = z.array(z.string()).parse(await driver.redis("KEYS", "*"));
  expect(keys.length).toBeGreaterThan(5);
  const values = await Promise.all(
    keys.map(async (key) => {
      const type = await driver.redis("TYPE", key);
      return JSON.stringify([key, await (type === "hash" ? driver.redis("HGETALL", key) : driver.redis("GET", key))]);
    }),
  );
  expect(secretsIn(values.join("\n"))).toEqual([]);
});

test("no message, dead letter or log of QStash holds a secret, but for the header that lets it through to us", async () => {
  const headers = { Authorization: `Bearer ${driver.service.env.qstash.token}` };
  const read = async (path: string) => (await fetch(`${driver.stack.qstash.url}${path}`, { headers })).text();
  const [logs, letters] = await Promise.all([read("/v2/logs?count=1000"), read("/v2/dlq")]);
  expect(letters).toContain("responseBody");
  expect(logs).toContain('"state":"DELIVERED"');
  const forwarded = /"X-Vercel-Protection-Bypass":\["marked-bypass-secret-77ab"\]/gi;
  expect(logs).toMatch(forwarded);
  expect(secretsIn(`${logs}${letters}`.replace(forwarded, ""))).toEqual([]);
  expect(secretsIn(JSON.stringify(driver.published))).toEqual([]);
});

test("no error that is thrown holds a secret", async () => {
  const { service, stack } = driver;
  stack.supabase.fault({ outage: true });
  const error = await service.store.readHealth().catch((caught: unknown) => caught);
  stack.supabase.clearFaults();
  expect(error).toBeInstanceOf(StoreError);
  stack.qstash.faults.set({ outage: true });
  const pause = await service.publisher.pause().catch((caught: unknown) => caught);
  const { reason } = await service.publisher.publish([{ path: "/x", body: {}, delayMs: 0, dedupe: "d" }]);
  stack.qstash.faults.set({});
  expect(pause).toBeInstanceOf(Error);
  const said = [error, pause].map((e) =>
    e instanceof Error ? `${e.message} ${e.stack} ${JSON.stringify(e)} ${e.cause}` : "",
  );
  expect(secretsIn(`${said.join("\n")} ${reason}`)).toEqual([]);
});
