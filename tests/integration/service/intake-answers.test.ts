import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { type Driver, driveService } from "@/tests/integration/service/drive-service";

/** What stands behind an answer of intake, and what a refusal leaves for whoever looks for its reason. */
let driver: Driver;

beforeAll(async () => {
  driver = await driveService();
});
afterAll(() => driver.app.close());

const HOLDINGS = "ACCOUNT_HOLDINGS_UPDATED";

// B89
test("an accepted event is answered when its row is stored and its message acknowledged, not before", async () => {
  const { publisher } = driver.service;
  const [account, other] = [driver.nextAccount(), driver.nextAccount()];
  const webhookId = randomUUID();
  let arrived = () => {};
  let open = () => {};
  const reached = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  driver.service.publisher = {
    ...publisher,
    async publish(messages) {
      const answer = await publisher.publish(messages);
      arrived();
      await opened;
      return answer;
    },
  };
  let answered = false;
  const event = driver.event(HOLDINGS, account, { webhookId }).then((answer) => {
    answered = true;
    return answer;
  });
  await reached;
  driver.service.publisher = publisher;
  // Another event goes all the way meanwhile: time enough for an answer that waits for nobody.
  expect(await driver.event(HOLDINGS, other)).toMatchObject({ outcome: "accepted" });
  expect(answered).toBe(false);
  expect(await driver.rowsOf(webhookId)).toMatchObject([{ outcome: "accepted", processed: true }]);
  open();
  expect(await event).toMatchObject({ status: 200, outcome: "accepted" });
});

// B12: the signature alone is looked at, so that no other content type loses an event.
test.each([
  "application/x-www-form-urlencoded",
  "text/plain",
  "multipart/form-data; boundary=x",
  "APPLICATION/JSON",
  "",
])("a signed event of content type %j is taken like any other", async (contentType) => {
  const account = driver.nextAccount();
  const { userId } = driver.stack.snaptrade.account(account) ?? {};
  const eventTimestamp = new Date().toISOString();
  const fields = { webhookId: randomUUID(), eventType: HOLDINGS, accountId: account, userId, eventTimestamp };
  const { body, signature } = makeWebhook(fields, driver.stack.env.SNAPTRADE_CONSUMER_KEY ?? "");
  const headers = { signature, ...(contentType === "" ? {} : { "content-type": contentType }) };
  const answer = await fetch(`${driver.app.url}/api/snaptrade/webhook`, {
    method: "POST",
    body: new Blob([body]),
    headers,
  });
  expect([answer.status, await answer.json()]).toMatchObject([200, { outcome: "accepted" }]);
});

// B12, B111
test("each refusal leaves one log line that names its reason, and nothing of what was sent", async () => {
  await driver.app.settled();
  driver.app.log.splice(0);
  const forged = '"}\r\n{"level":"error","msg":"forged"}\u001b[2K';
  const attempts: [string, BodyInit, Record<string, string>][] = [
    ["no valid signature", JSON.stringify({ eventType: forged, accountId: "x".repeat(100_000) }), {}],
    ["no valid signature", JSON.stringify({ eventType: "forged" }), { signature: "forged", "x-forged": "forged" }],
    ["body too large", `{"forged":"${"x".repeat(300_000)}"}`, {}],
    ["not JSON", "forged", { "content-type": "text/plain" }],
    ["not an object", '["forged"]', {}],
  ];
  const answers: unknown[] = [];
  for (const [, body, headers] of attempts) {
    const answer = await fetch(`${driver.app.url}/api/snaptrade/webhook`, { method: "POST", body, headers });
    answers.push(await answer.json());
  }
  expect(driver.app.log).toMatchObject(attempts.map(([reason]) => ({ level: "warn", msg: "Webhook refused", reason })));
  expect(answers).toEqual(attempts.map(([error]) => ({ error })));
  expect(JSON.stringify(driver.app.log)).not.toMatch(/forged|xxx/);
});
