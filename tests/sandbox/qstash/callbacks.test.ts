import { expect, test } from "vitest";
import { type Received, setStage, settled } from "@/tests/sandbox/qstash/harness";

function answerByPath(statuses: Record<string, number>) {
  return ({ path, response }: Received) => {
    response.writeHead(statuses[path] ?? 200, { "X-From": "destination" }).end(`answer of ${path}`);
  };
}

function decode(text: unknown): string {
  return Buffer.from(String(text), "base64").toString();
}

test("a failure callback comes once, after the last attempt, as a signed message with the documented body", async () => {
  const stage = await setStage();
  stage.destination.respond = answerByPath({ "/job": 400 });
  const failureCallback = `${stage.destination.url}/failed`;
  const { messageId } = await stage.client.publishJSON({
    url: `${stage.destination.url}/job`,
    body: { jobId: "j-1" },
    headers: { tenant: "t" },
    retries: 1,
    retryDelay: "1000",
    failureCallback,
  });
  await settled(stage, 1);
  stage.qstash.clock.advance(1_000);
  await settled(stage, 3);
  const call = stage.destination.received[2];
  expect(call).toMatchObject({ path: "/failed", method: "POST", headers: { "content-type": "application/json" } });
  const body = JSON.parse(call?.body ?? "");
  expect(body).toEqual({
    status: 400,
    header: expect.objectContaining({ "X-From": ["destination"] }),
    body: expect.any(String),
    retried: 1,
    maxRetries: 1,
    dlqId: expect.stringMatching(/^\d+-\d+$/),
    sourceMessageId: messageId,
    url: `${stage.destination.url}/job`,
    method: "POST",
    sourceHeader: { "Content-Type": "application/json", Tenant: "t" },
    sourceBody: expect.any(String),
    notBefore: expect.stringMatching(/^\d{13}$/),
    createdAt: expect.stringMatching(/^\d{13}$/),
    callerIP: "127.0.0.1",
  });
  expect([decode(body.body), decode(body.sourceBody)]).toEqual(["answer of /job", '{"jobId":"j-1"}']);
  expect(call?.headers["upstash-message-id"]).not.toBe(messageId);
  const signature = String(call?.headers["upstash-signature"]);
  expect(await stage.receiver.verify({ signature, body: call?.body ?? "", url: failureCallback })).toBe(true);
  expect((await stage.client.dlq.listMessages()).messages).toMatchObject([{ dlqId: body.dlqId, messageId }]);
});

test("489 and a destination that cannot be reached lead to the failure callback too", async () => {
  const stage = await setStage();
  stage.destination.respond = ({ path, response }) => {
    if (path === "/refused") response.writeHead(489, { "Upstash-NonRetryable-Error": "true" }).end();
    else if (path === "/cut") response.destroy();
    else response.end();
  };
  const failureCallback = `${stage.destination.url}/failed`;
  await stage.client.publish({ url: `${stage.destination.url}/refused`, failureCallback });
  await settled(stage, 2);
  await stage.client.publish({ url: `${stage.destination.url}/cut`, retries: 0, failureCallback });
  await settled(stage, 4);
  const bodies = stage.destination.received
    .filter(({ path }) => path === "/failed")
    .map(({ body }) => JSON.parse(body));
  expect(bodies).toMatchObject([
    { status: 489, retried: 0, maxRetries: 3 },
    { status: 0, retried: 0, maxRetries: 0 },
  ]);
});

test("a callback comes after every attempt until success, and a success leads to no failure callback", async () => {
  const stage = await setStage();
  let attempts = 0;
  stage.destination.respond = ({ path, response }) => {
    const status = path === "/job" && attempts++ === 0 ? 503 : 200;
    response.writeHead(status).end("done");
  };
  await stage.client.publish({
    url: `${stage.destination.url}/job`,
    retryDelay: "1000",
    callback: `${stage.destination.url}/called`,
    failureCallback: `${stage.destination.url}/failed`,
  });
  await settled(stage, 2);
  stage.qstash.clock.advance(1_000);
  await settled(stage, 4);
  const bodies = stage.destination.received
    .filter(({ path }) => path === "/called")
    .map(({ body }) => JSON.parse(body));
  expect(bodies).toMatchObject([
    { status: 503, retried: 0, maxRetries: 3 },
    { status: 200, retried: 1, maxRetries: 3 },
  ]);
  expect(bodies[0]).not.toHaveProperty("dlqId");
  expect(stage.qstash.state().deliveriesByPath).toEqual({ "/job": 2, "/called": 2 });
});

test("a failure callback has its own settings, and without them the retries of its source", async () => {
  const stage = await setStage();
  stage.destination.respond = answerByPath({ "/job": 500, "/failed": 500 });
  await stage.client.publish({
    url: `${stage.destination.url}/job`,
    retries: 0,
    failureCallback: `${stage.destination.url}/failed`,
    headers: {
      "Upstash-Failure-Callback-Retries": "1",
      "Upstash-Failure-Callback-Retry-Delay": "1000",
      "Upstash-Failure-Callback-Method": "PUT",
      "Upstash-Failure-Callback-Delay": "5s",
      "Upstash-Failure-Callback-Forward-Secret": "s",
    },
  });
  await settled(stage, 1);
  stage.qstash.clock.advance(5_000);
  await settled(stage, 2);
  expect(stage.destination.received[1]).toMatchObject({ method: "PUT", headers: { secret: "s" } });
  stage.qstash.clock.advance(1_000);
  await settled(stage, 3);
  expect(stage.qstash.state()).toMatchObject({ dlq: 2, pending: 0 });

  await stage.client.publish({
    url: `${stage.destination.url}/job`,
    retries: 0,
    failureCallback: `${stage.destination.url}/failed`,
  });
  await settled(stage, 5);
  expect(stage.qstash.state()).toMatchObject({ dlq: 4, pending: 0 });
});

test("callbacks are not counted as published", async () => {
  const stage = await setStage();
  await stage.client.publish({ url: stage.destination.url, callback: `${stage.destination.url}/called` });
  await settled(stage, 2);
  expect(stage.qstash.state()).toMatchObject({ published: 1 });
});
