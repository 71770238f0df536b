import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { reconcileTick } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";

/** Posts a body as it stands, signed. */
async function postText(body: string, fields: Record<string, unknown>): Promise<{ status: number; json: unknown }> {
  const { signature } = makeWebhook(fields, driver.stack.env.SNAPTRADE_CONSUMER_KEY ?? "");
  const answer = await fetch(`${driver.app.url}/api/snaptrade/webhook`, {
    method: "POST",
    body,
    headers: { signature },
  });
  return { status: answer.status, json: await answer.json() };
}

async function onlyRow(webhookId: string) {
  const rows = await driver.rowsOf(webhookId);
  expect(rows).toHaveLength(1);
  const [row] = rows;
  if (row === undefined) throw new Error(`No row of ${webhookId}`);
  return row;
}

test("accepted: the row says processed at once and finished once its job is final", async () => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  const answer = await driver.event(HOLDINGS, account, { webhookId });
  expect(answer).toMatchObject({ status: 200, outcome: "accepted" });
  expect(await onlyRow(webhookId)).toMatchObject({
    outcome: "accepted",
    processed: true,
    finished_at: null,
    job_ids: [answer.jobId],
  });
  await driver.deliver(answer.jobId);
  expect((await onlyRow(webhookId)).finished_at).not.toBeNull();
});

test("accepted with two jobs: finished when both are final, not before", async () => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  const answer = await driver.event("NEW_ACCOUNT_AVAILABLE", account, { webhookId });
  expect(answer).toMatchObject({ outcome: "accepted" });
  expect(answer.jobId).toBeUndefined();
  const { job_ids } = await onlyRow(webhookId);
  expect(job_ids).toHaveLength(2);
  expect((await driver.jobs(account)).map((job) => job.work_type).sort()).toEqual(["holdings", "transactions"]);
  await driver.deliver(job_ids[0]);
  expect((await onlyRow(webhookId)).finished_at).toBeNull();
  await driver.deliver(job_ids[1]);
  expect(await onlyRow(webhookId)).toMatchObject({ processed: true, finished_at: expect.any(Date) });
});

test("accepted, state only: no job, finished at once", async () => {
  const account = await driver.synced(driver.nextAccount());
  const webhookId = randomUUID();
  expect(await driver.event("CONNECTION_UPDATED", account, { webhookId })).toMatchObject({ outcome: "accepted" });
  expect(await onlyRow(webhookId)).toMatchObject({ processed: true, job_ids: [], finished_at: expect.any(Date) });
});

test("coalesced in Postgres: the row names the job that covers it and is processed when that is final", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  await driver.redis("DEL", `snaptrade:account:queued:holdings:${account}`);
  const webhookId = randomUUID();
  expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ outcome: "coalesced", jobId });
  expect(await onlyRow(webhookId)).toMatchObject({ processed: false, finished_at: null, job_ids: [jobId] });
  await driver.deliver(jobId);
  expect(await onlyRow(webhookId)).toMatchObject({ processed: true, finished_at: expect.any(Date) });
});

test("an event of two keys coalesces only if both are queued; else it is accepted", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { jobId } = await driver.event(HOLDINGS, account);
  const webhookId = randomUUID();
  expect(await driver.event("NEW_ACCOUNT_AVAILABLE", account, { webhookId })).toMatchObject({ outcome: "accepted" });
  expect((await onlyRow(webhookId)).job_ids).toContain(jobId);
  expect(await driver.event("NEW_ACCOUNT_AVAILABLE", account)).toMatchObject({ outcome: "coalesced" });
});

test("unroutable: recorded and finished at once, with the payload, and nothing is queued", async () => {
  for (const fields of [{}, { accountId: "acct 0000" }, { accountId: "x".repeat(129) }, { accountId: 7 }]) {
    const webhookId = randomUUID();
    expect(await driver.app.post({ eventType: HOLDINGS, webhookId, ...fields })).toEqual({
      status: 200,
      outcome: "unroutable",
    });
    expect(await onlyRow(webhookId)).toMatchObject({
      outcome: "unroutable",
      processed: false,
      job_ids: [],
      finished_at: expect.any(Date),
    });
  }
});

test("an unknown event type is ignored with 200 and leaves no row", async () => {
  const webhookId = randomUUID();
  expect(await driver.event("TEST_WEBHOOK", driver.nextAccount(), { webhookId })).toMatchObject({
    status: 200,
    outcome: "ignored",
  });
  expect(await driver.rowsOf(webhookId)).toEqual([]);
});

test("too old, too far ahead or without a readable time: 200 expired and no row; the provider's last retry is taken", async () => {
  const account = driver.nextAccount();
  const hours = (h: number) => new Date(Date.now() + h * 3_600_000).toISOString();
  for (const eventTimestamp of [hours(-24.1), hours(0.2), "yesterday", null]) {
    const webhookId = randomUUID();
    const answer = await driver.event(HOLDINGS, account, { webhookId, eventTimestamp });
    expect(answer).toMatchObject({ status: 200, outcome: "expired" });
    expect(await driver.rowsOf(webhookId)).toEqual([]);
  }
  expect(await driver.jobs(account)).toEqual([]);
  expect(await driver.event(HOLDINGS, account, { eventTimestamp: hours(-23.9) })).toMatchObject({
    outcome: "accepted",
  });
});

test("an event of an unknown user waits, and is accepted by reconcile once the user is known", async () => {
  const webhookId = randomUUID();
  const ids = { userId: "user-later", accountId: "acct-later", brokerageAuthorizationId: "conn-later" };
  expect(await driver.app.post({ eventType: HOLDINGS, webhookId, ...ids })).toEqual({
    status: 200,
    outcome: "waiting",
  });
  expect(await onlyRow(webhookId)).toMatchObject({
    outcome: "waiting",
    processed: false,
    finished_at: null,
    job_ids: [],
  });
  await driver.service.store.putUser({ userId: "user-later", secretCiphertext: "not read in this test" });
  expect(await reconcileTick(driver)).toMatchObject({ released: 1 });
  const row = await onlyRow(webhookId);
  expect(row).toMatchObject({ outcome: "accepted", processed: true, finished_at: null });
  expect(driver.published.at(-1)?.dedupe).toBe(`${row.job_ids[0]}-1`);
});

test("what waits makes no account: not even where the event's user and connection contradict each other", async () => {
  const account = await driver.synced(driver.nextAccount());
  const { connectionId } = driver.stack.snaptrade.account(account) ?? {};
  for (const userId of ["nobody", "user-0009"]) {
    const accountId = `acct-of-${userId}`;
    expect(
      await driver.app.post({ eventType: HOLDINGS, accountId, userId, brokerageAuthorizationId: connectionId }),
    ).toMatchObject({ outcome: "waiting" });
    expect(await driver.sql`select * from snaptrade_accounts where account_id = ${accountId}`).toHaveLength(0);
  }
});

test("fifty redeliveries at once and one later are one acceptance and fifty duplicates (I2)", async () => {
  const account = driver.nextAccount();
  const webhookId = randomUUID();
  const eventTimestamp = new Date().toISOString();
  const post = () => driver.event(HOLDINGS, account, { webhookId, eventTimestamp });
  const answers = await Promise.all(Array.from({ length: 50 }, post));
  answers.push(await post());
  await driver.redis("DEL", `snaptrade:webhook:${webhookId}`, `snaptrade:account:queued:holdings:${account}`);
  answers.push(await post());
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(answers.filter(({ outcome }) => outcome === "accepted")).toHaveLength(1);
  expect(answers.filter(({ outcome }) => outcome === "duplicate")).toHaveLength(51);
  expect(await onlyRow(webhookId)).toMatchObject({ outcome: "accepted" });
  expect(await driver.jobs(account)).toHaveLength(1);
  expect(driver.logged("Duplicate webhook")).toHaveLength(51);
});

test("an id that has a row already is a duplicate, also a row that was never processed", async () => {
  const account = driver.nextAccount();
  for (const processed of [false, true]) {
    const webhookId = randomUUID();
    await driver.sql`insert into snaptrade_webhook_events (webhook_id, processed) values (${webhookId}, ${processed})`;
    expect(await driver.event(HOLDINGS, account, { webhookId })).toMatchObject({ status: 200, outcome: "duplicate" });
    expect(await driver.rowsOf(webhookId)).toHaveLength(1);
  }
  expect(await driver.jobs(account)).toEqual([]);
});

test("the misspelt webookId is an id, the right spelling wins, and a body without any id is known by its digest", async () => {
  const account = driver.nextAccount();
  const id = randomUUID();
  const eventTimestamp = new Date().toISOString();
  const misspelt = { webhookId: undefined, webookId: id, eventTimestamp };
  expect(await driver.event(HOLDINGS, account, misspelt)).toMatchObject({ outcome: "accepted" });
  expect(await driver.event(HOLDINGS, account, { webhookId: id, webookId: "other" })).toMatchObject({
    outcome: "duplicate",
  });
  const nameless = { webhookId: undefined, eventTimestamp };
  expect(await driver.event(HOLDINGS, account, nameless)).toMatchObject({ outcome: "coalesced" });
  expect(await driver.event(HOLDINGS, account, nameless)).toMatchObject({ outcome: "duplicate" });
  expect(await driver.event(HOLDINGS, account, { webhookId: `error_${id}` })).toMatchObject({ outcome: "coalesced" });
  expect(await driver.event(HOLDINGS, account, { webhookId: `error_${id}` })).toMatchObject({ outcome: "duplicate" });
});

test("the stored payload has every character and digit as it came, and no webhookSecret", async () => {
  const account = driver.nextAccount();
  const { userId } = driver.stack.snaptrade.account(account) ?? {};
  const webhookId = randomUUID();
  const kept =
    `"webhookId":"${webhookId}","eventType":"${HOLDINGS}","eventTimestamp":"${new Date().toISOString()}",` +
    `"accountId":"${account}","userId":"${userId}","note":"Délai \\u0000 \\ud83d\\ude42 \\ud800 \\u007f \\/",` +
    `"lag":5.0,"big":123456789012345678901234567890,"small":1e-8,"odd":1E400,"":{"b":[],"a":-0}`;
  const body = `{"webhookSecret":"a-secret-to-drop",${kept}}`;
  const { signWebhook } = await import("@/sandbox/snaptrade/sign-webhook");
  const signature = signWebhook(body, driver.stack.env.SNAPTRADE_CONSUMER_KEY ?? "");
  const answer = await fetch(`${driver.app.url}/api/snaptrade/webhook`, {
    method: "POST",
    body,
    headers: { signature },
  });
  expect(answer.status).toBe(200);
  const [row] = await driver.sql`
    select payload::text as text from snaptrade_webhook_events where webhook_id = ${webhookId}`;
  expect(row?.text).not.toContain("a-secret-to-drop");
  for (const token of ["5.0", "123456789012345678901234567890", "1e-8", "-0"]) expect(row?.text).toContain(token);
  expect(JSON.parse(row?.text)).toEqual(JSON.parse(`{${kept}}`));
});

test("a body that is too large, not JSON, no object, not UTF-8 or too deep is refused before anything is asked", async () => {
  const deep = `{"a":${"[".repeat(200)}${"]".repeat(200)}}`;
  const cost = await driver.costOf(async () => {
    expect(await postText(`{"a":"${"x".repeat(256 * 1024)}"}`, {})).toMatchObject({ status: 413 });
    for (const body of ["", "{", "[]", "null", '"text"', '{"a":NaN}', deep]) {
      expect(await postText(body, {}), body.slice(0, 20)).toMatchObject({ status: 400 });
    }
    const answer = await fetch(`${driver.app.url}/api/snaptrade/webhook`, {
      method: "POST",
      body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    });
    expect(answer.status).toBe(400);
    expect(await postText('{"a":1}', { a: 2 })).toMatchObject({ status: 401 });
  });
  expect(cost).toEqual({ redis: 0, postgres: 0, qstash: 0, snaptrade: 0 });
});
