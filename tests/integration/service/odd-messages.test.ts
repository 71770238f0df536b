import { randomUUID } from "node:crypto";
import { request as httpRequest } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { FAILURE_PATH, SWEEP_PATH, workerPath } from "@/lib/jobs/publisher";
import { Signer } from "@/sandbox/qstash/signer";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { hostileText } from "@/tests/fuzz/hostile";
import { fuzzRuns } from "@/tests/fuzz/runs";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";
const LARGEST = 2 ** 31 - 1;

/** Everything that a message could change: jobs, events, accounts, state, and Redis's keys but for the counters. */
async function stateOf(): Promise<unknown> {
  const { sql } = driver;
  const [rows] = await sql`
    select (select jsonb_agg(j order by id) from snaptrade_sync_jobs j) as jobs,
      (select jsonb_agg(a order by account_id) from snaptrade_accounts a) as accounts,
      (select jsonb_agg(e order by id) from snaptrade_webhook_events e) as events,
      (select jsonb_agg(s order by name) from snaptrade_service_state s) as state`;
  return { rows, keys: await keys() };
}

async function keys(): Promise<string[]> {
  const found = z.array(z.string()).parse(await driver.redis("KEYS", "*"));
  return found.filter((key) => !key.endsWith("snaptrade:metrics") && key !== "snaptrade:provider:budget").sort();
}

test("a signed message that is no open job of ours, whatever it holds: 200 or 489 of the real parts, and nothing changes", async () => {
  const accountId = driver.nextAccount();
  const { jobId = "" } = await driver.event(HOLDINGS, accountId);
  const text = fc.oneof(hostileText, fc.constantFrom("-infinity", "infinity", "2026-02-30", "0000-01-01T00:00:00Z"));
  const job = fc.record({
    jobId: fc.constantFrom(jobId, randomUUID()),
    workType: fc.constantFrom("holdings", "transactions"),
    accountId: fc.oneof(fc.constantFrom(accountId, "acct-9999"), text),
    delivery: fc.constantFrom(0, -1, 7, LARGEST, LARGEST + 1, 2 ** 53 - 1, 1.5),
  });
  const time = fc.oneof(text, fc.constantFrom("9999-12-31T23:59:59.999999999+15:59", "0001-01-01T00:00:00-15:59"));
  const page = fc.record({
    sweepId: fc.oneof(fc.uuid(), text),
    page: fc.constantFrom(0, LARGEST + 1, -1),
    cursor: fc.oneof(
      fc.constant(null),
      fc.record({ workType: fc.constant("holdings"), attempted: time, accountId: text }),
    ),
  });
  const callback = job.map((message) => ({
    sourceBody: Buffer.from(JSON.stringify(message)).toString("base64"),
    status: 503,
    dlqId: "\u001b[2J\n",
  }));
  const message = fc.oneof(
    fc.tuple(fc.constantFrom(workerPath("holdings"), workerPath("transactions")), job),
    fc.tuple(fc.constant(FAILURE_PATH), callback),
    fc.tuple(fc.constant(SWEEP_PATH), page),
  );
  const before = await stateOf();
  await fc.assert(
    fc.asyncProperty(message, async ([path, body]) => {
      expect([200, 489]).toContain((await driver.asQStash(path, JSON.stringify(body))).status);
    }),
    fuzzRuns(150, 0.01),
  );
  expect(await stateOf()).toEqual(before);
  expect(
    driver.app.log.filter(({ msg }) => /^(Unexpected fault|Delivery failed|Failure callback)/.test(String(msg))),
  ).toEqual([]);
  expect(await driver.deliver(jobId)).toMatchObject({ outcome: "done" });
});

test("the cursor of a page that Postgres wrote is a page", async () => {
  for (const [attempted] of await driver.sql<{ attempted: string }[]>`
    select to_jsonb(t) #>> '{}' as attempted from unnest(array['-infinity', '2026-09-01T12:00:00.000001Z', '1970-01-01']::timestamptz[]) t`.values()) {
    const cursor = { workType: "holdings", attempted, accountId: "acct-0001" };
    const answer = await driver.asQStash(SWEEP_PATH, JSON.stringify({ sweepId: randomUUID(), page: 1, cursor }));
    expect(answer, String(attempted)).toMatchObject({ status: 200, outcome: "replaced" });
  }
});

test("a valid token that is sent again is overtaken: it reads nothing and changes nothing", async () => {
  const accountId = driver.nextAccount();
  const { jobId = "" } = await driver.event(HOLDINGS, accountId);
  const path = workerPath("holdings");
  const body = JSON.stringify({ jobId, workType: "holdings", accountId, delivery: 1 });
  const { currentSigningKey: current, nextSigningKey: next } = driver.service.env.qstash;
  const signature = await new Signer({ current, next }).sign({
    url: `${driver.app.url}${path}`,
    body: Buffer.from(body),
    key: "current",
    skewSeconds: 0,
  });
  const send = async () => {
    const headers = { "Upstash-Signature": signature, "Upstash-Message-Id": "msg_replayed" };
    const answer = await fetch(`${driver.app.url}${path}`, { method: "POST", body, headers });
    return [answer.status, await answer.json()];
  };
  expect(await send()).toEqual([200, { outcome: "done" }]);
  const before = await stateOf();
  const calls = driver.callsOf(accountId).length;
  for (let time = 0; time < 3; time += 1) expect(await send()).toEqual([200, { outcome: "overtaken" }]);
  expect(driver.callsOf(accountId)).toHaveLength(calls);
  expect(await stateOf()).toEqual(before);
});

/** The keys that the service makes, each with ids in their one form. */
const ID = "[A-Za-z0-9_.-]{1,128}";
const KEY_FORMS = new RegExp(
  `^snaptrade:(webhook:${ID}|account:(queued|lock):(holdings|transactions):${ID}|account:cooldown:${ID}|` +
    `provider:(budget|cooldown|slot:${ID}:\\d+:\\d+)|metrics|alert:\\w+)$`,
);

test("no id of an event forms another key: separators, patterns, line ends and prototypes stay outside Redis", async () => {
  const victim = driver.nextAccount();
  const { jobId } = await driver.event(HOLDINGS, victim);
  const queued = `snaptrade:account:queued:holdings:${victim}`;
  expect(await driver.redis("GET", queued)).toBe(jobId);
  const ids = fc.sample(hostileText, { numRuns: 60, seed: 1 });
  const aimed = [
    "*",
    "acct-*",
    `x:${victim}`,
    `../holdings:${victim}`,
    `${victim}\0`,
    `${victim}\n`,
    ` ${victim}`,
    `${victim}:1:0`,
  ];
  for (const id of [...new Set([...ids, ...aimed])]) {
    for (const fields of [{ webhookId: id }, { accountId: id }, { webhookId: id, accountId: id, userId: id }]) {
      const answer = await driver.app.post({ eventType: HOLDINGS, brokerageAuthorizationId: id, ...fields });
      expect(answer.status, JSON.stringify(id)).toBe(200);
    }
  }
  const all = z.array(z.string()).parse(await driver.redis("KEYS", "*"));
  expect(all.length).toBeGreaterThan(20);
  expect(all.filter((key) => !KEY_FORMS.test(key))).toEqual([]);
  expect(await driver.redis("GET", queued)).toBe(jobId);
});

/** A request as a forger or a proxy in between may send it; `fetch` would set the host itself. */
function post(path: string, body: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${driver.app.url}${path}`, { method: "POST", headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const FORGED = {
  host: "evil.example.com",
  "x-forwarded-host": "evil.example.com",
  "x-forwarded-proto": "http",
  "x-forwarded-port": "1",
  "x-original-host": "evil.example.com",
  "x-original-url": "/api/health",
  forwarded: "host=evil.example.com;proto=http",
};

test("a forged host changes neither where jobs are published to nor which destination a token is good for", async () => {
  const accountId = driver.nextAccount();
  const { env } = driver.service;
  const fields = {
    webhookId: randomUUID(),
    eventType: HOLDINGS,
    eventTimestamp: new Date().toISOString(),
    accountId,
    userId: driver.stack.snaptrade.account(accountId)?.userId,
  };
  const { body, signature } = makeWebhook(fields, env.snaptrade.consumerKeys[0] ?? "");
  const { qstash } = driver.stack;
  const deliveries = () => qstash.state().deliveries;
  const before = deliveries().length;
  qstash.faults.set({});
  expect(await post("/api/snaptrade/webhook", body, { ...FORGED, signature })).toBe(200);
  await expect.poll(() => driver.jobs(accountId), { timeout: 20_000 }).toMatchObject([{ status: "done" }]);
  qstash.faults.set({ publish: { acknowledgeAndLose: true } });
  expect(
    deliveries()
      .slice(before)
      .map(({ url }) => url),
  ).toEqual([`${env.appUrl}${workerPath("holdings")}`]);

  const [job] = await driver.jobs(accountId);
  const message = JSON.stringify({ jobId: job?.id, workType: "holdings", accountId, delivery: 1 });
  const { currentSigningKey: current, nextSigningKey: next } = env.qstash;
  const tokenFor = (origin: string) =>
    new Signer({ current, next }).sign({
      url: `${origin}${workerPath("holdings")}`,
      body: Buffer.from(message),
      key: "current",
      skewSeconds: 0,
    });
  for (const origin of ["https://evil.example.com", "http://evil.example.com", "http://evil.example.com:1"]) {
    const headers = { ...FORGED, "upstash-signature": await tokenFor(origin) };
    expect(await post(workerPath("holdings"), message, headers)).toBe(401);
  }
  const headers = { ...FORGED, "upstash-signature": await tokenFor(env.appUrl) };
  expect(await post(workerPath("holdings"), message, headers)).toBe(200);
});
