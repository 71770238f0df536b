import { expect, test } from "vitest";
import { CURRENT_KEY, type Received, setStage, settled, until } from "@/tests/sandbox/qstash/harness";

const SECONDS = 1_000;

function answerWith(status: number, headers: Record<string, string> = {}, body = "") {
  return ({ response }: Received) => {
    response.writeHead(status, headers).end(body);
  };
}

function header(call: Received | undefined, name: string): string {
  const value = call?.headers[name];
  if (typeof value !== "string") throw new Error(`no header ${name}`);
  return value;
}

test("a delivery has the documented headers", async () => {
  const stage = await setStage();
  const { messageId } = await stage.client.publishJSON({ url: `${stage.destination.url}/x`, body: {} });
  await settled(stage, 1);
  expect(stage.destination.received[0]?.headers).toMatchObject({
    "user-agent": "Upstash-QStash",
    "content-type": "application/json",
    "upstash-message-id": messageId,
    "upstash-retried": "0",
    "upstash-caller-ip": "127.0.0.1",
    "upstash-region": "EU-CENTRAL-1",
    "upstash-signature": expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
  });
});

test("the published receiver accepts the signature, with the check of the URL, and no other URL, body or key", async () => {
  const stage = await setStage();
  const url = `${stage.destination.url}/x?y=1&z=%20a`;
  await stage.client.publishJSON({ url, body: { secret: "naïve" } });
  await settled(stage, 1);
  const [call] = stage.destination.received;
  const signature = header(call, "upstash-signature");
  const body = call?.body ?? "";
  expect(await stage.receiver.verify({ signature, body, url })).toBe(true);
  await expect(stage.receiver.verify({ signature, body, url: `${url}/` })).rejects.toThrow("invalid subject");
  await expect(stage.receiver.verify({ signature, body: `${body} `, url })).rejects.toThrow("body hash");
  const claims = JSON.parse(Buffer.from(signature.split(".")[1] ?? "", "base64url").toString());
  expect(claims).toMatchObject({ iss: "Upstash", sub: url, jti: expect.stringMatching(/^jwt_/) });
  expect(claims.exp - claims.iat).toBe(300);
});

test("a message is signed when it is delivered: after a week's delay, and after each retry, the token is fresh", async () => {
  const stage = await setStage();
  stage.destination.respond = answerWith(500);
  await stage.client.publish({ url: stage.destination.url, body: "b", delay: "7d", retries: 1 });
  stage.qstash.clock.advance(7 * 86_400 * SECONDS);
  await settled(stage, 1);
  stage.qstash.clock.advance(86_400 * SECONDS);
  await settled(stage, 2);
  const signatures = stage.destination.received.map((call) => header(call, "upstash-signature"));
  expect(new Set(signatures).size).toBe(2);
  for (const signature of signatures) {
    expect(await stage.receiver.verify({ signature, body: "b", url: stage.destination.url })).toBe(true);
  }
});

test("rotating the keys makes the next key the current one, and deliveries are signed with it", async () => {
  const stage = await setStage();
  const before = await stage.api("GET", "/v2/keys");
  const after = await stage.api("POST", "/v2/keys/rotate");
  expect(before.json).toMatchObject({ current: CURRENT_KEY });
  expect(after.json).toMatchObject({ current: before.json && Reflect.get(Object(before.json), "next") });
  await stage.client.publish({ url: stage.destination.url, body: "b" });
  await settled(stage, 1);
  const signature = header(stage.destination.received[0], "upstash-signature");
  expect(await stage.receiver.verify({ signature, body: "b", url: stage.destination.url })).toBe(true);
});

test("a failing destination is tried 1 + 3 times with the default backoff, under the same message id", async () => {
  const stage = await setStage();
  stage.destination.respond = answerWith(500);
  const { messageId } = await stage.client.publish({ url: stage.destination.url, body: "b" });
  await settled(stage, 1);
  let calls = 1;
  for (const wait of [12.18, 148.4, 1_808]) {
    stage.qstash.clock.advance((wait - 0.5) * SECONDS);
    expect(stage.qstash.state()).toMatchObject({ pending: 1, inFlight: 0 });
    stage.qstash.clock.advance(1 * SECONDS);
    await settled(stage, ++calls);
  }
  stage.qstash.clock.advance(86_400 * SECONDS);
  expect(stage.qstash.state()).toMatchObject({ pending: 0, dlq: 1 });
  expect(stage.destination.received.map((call) => header(call, "upstash-retried"))).toEqual(["0", "1", "2", "3"]);
  expect(new Set(stage.destination.received.map((call) => header(call, "upstash-message-id")))).toEqual(
    new Set([messageId]),
  );
  expect(stage.qstash.state().deliveries).toMatchObject(
    [0, 1, 2, 3].map((retried) => ({ messageId, retried, status: 500 })),
  );
});

test("the message's own retry delay is an expression in milliseconds", async () => {
  const stage = await setStage();
  stage.destination.respond = answerWith(500);
  await stage.client.publish({ url: stage.destination.url, retries: 2, retryDelay: "pow(2, retried) * 1000" });
  await settled(stage, 1);
  stage.qstash.clock.advance(999);
  expect(stage.qstash.state().pending).toBe(1);
  stage.qstash.clock.advance(1);
  await settled(stage, 2);
  stage.qstash.clock.advance(1_999);
  expect(stage.qstash.state().pending).toBe(1);
  stage.qstash.clock.advance(1);
  await settled(stage, 3);
});

test.each([
  ["Retry-After", "40", 40],
  ["X-RateLimit-Reset-Tokens", "1m30s", 90],
])("the destination's %s: %s decides the next try", async (name, value, seconds) => {
  const stage = await setStage();
  stage.destination.respond = answerWith(429, { [name]: value });
  await stage.client.publish({ url: stage.destination.url, retries: 1 });
  await settled(stage, 1);
  stage.qstash.clock.advance(seconds * SECONDS - 1);
  expect(stage.qstash.state().pending).toBe(1);
  stage.qstash.clock.advance(1);
  await settled(stage, 2);
});

test("489 with Upstash-NonRetryable-Error goes to the DLQ without a retry", async () => {
  const stage = await setStage();
  stage.destination.respond = answerWith(489, { "Upstash-NonRetryable-Error": "true" }, "no such job");
  await stage.client.publish({ url: stage.destination.url });
  await settled(stage, 1);
  expect(stage.qstash.state()).toMatchObject({ pending: 0, dlq: 1 });
});

test("a redirect is not followed and counts as a failure", async () => {
  const stage = await setStage();
  stage.destination.respond = answerWith(302, { Location: `${stage.destination.url}/elsewhere` });
  await stage.client.publish({ url: `${stage.destination.url}/here`, retries: 0 });
  await settled(stage, 1);
  expect(stage.destination.received.map(({ path }) => path)).toEqual(["/here"]);
  expect(stage.qstash.state().dlq).toBe(1);
});

test("an attempt that is not answered within its timeout is cut and tried again", async () => {
  const stage = await setStage();
  let cut = false;
  stage.destination.respond = ({ response }) => response.on("close", () => (cut = true));
  await stage.client.publish({ url: stage.destination.url, timeout: 75, retries: 1 });
  await until(() => stage.destination.received.length === 1);
  stage.qstash.clock.advance(74_999);
  expect(stage.qstash.state().inFlight).toBe(1);
  stage.qstash.clock.advance(1);
  await settled(stage, 1);
  await until(() => cut);
  expect(stage.qstash.state()).toMatchObject({ pending: 1, deliveries: [{ status: 0 }] });
  stage.destination.respond = answerWith(200);
  stage.qstash.clock.advance(20 * SECONDS);
  await settled(stage, 2);
  expect(stage.qstash.state()).toMatchObject({ pending: 0, dlq: 0 });
});

test("a destination that cannot be reached or cuts the connection counts as a failed attempt", async () => {
  const stage = await setStage();
  stage.destination.respond = ({ response }) => response.destroy();
  await stage.client.publish({ url: stage.destination.url, retries: 0 });
  await settled(stage, 1);
  await stage.client.publish({ url: "http://127.0.0.1:1/closed", retries: 0 });
  await until(() => stage.qstash.state().dlq === 2);
  expect(stage.qstash.state().deliveries.map(({ status }) => status)).toEqual([0, 0]);
});

test("a pending message can be read and cancelled; after delivery it is gone", async () => {
  const stage = await setStage();
  const { messageId } = await stage.client.publishJSON({
    url: `${stage.destination.url}/x`,
    body: { a: 1 },
    delay: 60,
    retries: 7,
    retryDelay: "1000",
    label: ["one", "two"],
    flowControl: { key: "k", parallelism: 3, rate: 5, period: "1m" },
  });
  expect(await stage.client.messages.get(messageId)).toMatchObject({
    messageId,
    url: `${stage.destination.url}/x`,
    method: "POST",
    body: '{"a":1}',
    header: { "Content-Type": ["application/json"] },
    maxRetries: 7,
    retryDelayExpression: "1000",
    label: "one",
    labels: ["one", "two"],
    flowControlKey: "k",
    parallelism: 3,
    rate: 5,
    period: 60,
  });
  expect(await stage.client.messages.cancel(messageId)).toEqual({ cancelled: 1 });
  stage.qstash.clock.advance(60 * SECONDS);
  expect(stage.qstash.state()).toMatchObject({ pending: 0, deliveries: [] });
  expect((await stage.api("GET", `/v2/messages/${messageId}`)).status).toBe(404);
  expect((await stage.api("DELETE", `/v2/messages/${messageId}`)).status).toBe(404);
});

test("cancelling does not interrupt a call under way, but its message is not tried again", async () => {
  const stage = await setStage();
  const held: Received[] = [];
  stage.destination.respond = (call) => held.push(call);
  const { messageId } = await stage.client.publish({ url: stage.destination.url });
  await until(() => held.length === 1);
  await stage.client.messages.cancel(messageId);
  expect(stage.qstash.state().inFlight).toBe(1);
  held[0]?.response.writeHead(500).end();
  await settled(stage, 1);
  expect(stage.qstash.state()).toMatchObject({ pending: 0, dlq: 0 });
});

test("many messages are cancelled by filter, and a filter that does not exist is refused", async () => {
  const stage = await setStage();
  for (const label of ["a", "b", "c"]) await stage.client.publish({ url: stage.destination.url, delay: 60, label });
  expect((await stage.api("DELETE", "/v2/messages?labeel=a")).status).toBe(400);
  expect(await stage.client.messages.cancel({ filter: { label: ["a", "b"] } })).toEqual({ cancelled: 2 });
  expect(stage.qstash.state().pending).toBe(1);
  expect(await stage.client.messages.cancel({ all: true })).toEqual({ cancelled: 1 });
});

test("the log tells the life of a message, newest first, page by page", async () => {
  const stage = await setStage();
  stage.destination.respond = answerWith(500);
  const { messageId } = await stage.client.publish({ url: stage.destination.url, retries: 1, retryDelay: "1000" });
  await settled(stage, 1);
  await stage.client.publish({ url: `${stage.destination.url}/other`, delay: 60 });
  stage.destination.respond = answerWith(200);
  stage.qstash.clock.advance(1_000);
  await settled(stage, 2);
  const { logs } = await stage.client.logs({ messageIds: [messageId] });
  expect(logs.map(({ state }) => state)).toEqual(["DELIVERED", "ACTIVE", "RETRY", "ERROR", "ACTIVE", "CREATED"]);
  const first = await stage.client.logs({ count: 4 });
  const second = await stage.client.logs({ count: 4, cursor: first.cursor ?? "" });
  expect([first.logs.length, second.logs.length, second.cursor]).toEqual([4, 3, undefined]);
  expect((await stage.client.logs({ filter: { state: "DELIVERED" } })).logs).toHaveLength(1);
});
