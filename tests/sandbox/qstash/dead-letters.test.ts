import { expect, test } from "vitest";
import { quietClient, type Stage, setStage, settled } from "@/tests/sandbox/qstash/harness";

/** Lets messages with these labels fail for good, in this order. */
async function failAll(stage: Stage, labels: string[]): Promise<void> {
  stage.destination.respond = ({ response }) => response.writeHead(500, { "X-Why": "broken" }).end("no");
  let calls = stage.destination.received.length;
  for (const label of labels) {
    await stage.client.publishJSON({ url: `${stage.destination.url}/${label}`, body: { label }, retries: 0, label });
    await settled(stage, ++calls);
    stage.qstash.clock.advance(1_000);
  }
  stage.destination.respond = ({ response }) => response.end();
}

test("a dead letter shows the message and the last answer", async () => {
  const stage = await setStage();
  await failAll(stage, ["a"]);
  const { messages } = await stage.client.dlq.listMessages();
  expect(messages).toMatchObject([
    {
      dlqId: expect.stringMatching(/^\d+-\d+$/),
      messageId: expect.stringMatching(/^msg_/),
      url: `${stage.destination.url}/a`,
      method: "POST",
      body: '{"label":"a"}',
      maxRetries: 0,
      labels: ["a"],
      responseStatus: 500,
      responseBody: "no",
      responseHeader: { "X-Why": ["broken"] },
    },
  ]);
  expect((await stage.api("GET", `/v2/dlq/${messages[0]?.dlqId}`)).json).toMatchObject({ responseStatus: 500 });
});

test("a retry publishes a new message with the same body and removes the letter", async () => {
  const stage = await setStage();
  await failAll(stage, ["a"]);
  const [letter] = (await stage.client.dlq.listMessages()).messages;
  const { responses } = await stage.client.dlq.retry(letter?.dlqId ?? "");
  await settled(stage, 2);
  expect(responses).toHaveLength(1);
  expect(responses[0]?.messageId).not.toBe(letter?.messageId);
  expect(stage.destination.received[1]).toMatchObject({
    path: "/a",
    body: '{"label":"a"}',
    headers: { "upstash-retried": "0", "upstash-message-id": responses[0]?.messageId },
  });
  expect(stage.qstash.state().dlq).toBe(0);
});

test("a single retry answers 201 with the message id, takes overrides, and 404 when there is no such letter", async () => {
  const stage = await setStage();
  await failAll(stage, ["a"]);
  const [letter] = (await stage.client.dlq.listMessages()).messages;
  const path = `/v2/dlq/retry/${letter?.dlqId}`;
  expect(await stage.api("POST", path, { "Upstash-Delay": "10s" })).toEqual({
    status: 201,
    json: { messageId: expect.stringMatching(/^msg_/) },
  });
  expect(stage.qstash.state()).toMatchObject({ pending: 1, dlq: 0 });
  expect((await stage.api("POST", path)).status).toBe(404);
});

test("the deduplication id of a message does not swallow its retry from the DLQ", async () => {
  const stage = await setStage();
  stage.destination.respond = ({ response }) => response.writeHead(500).end();
  await stage.client.publish({ url: stage.destination.url, retries: 0, deduplicationId: "job-1" });
  await settled(stage, 1);
  await stage.client.dlq.retry({ all: true });
  await settled(stage, 2);
});

test("bulk retry answers 201 and goes by ids, by filter or over all, page by page", async () => {
  const stage = await setStage();
  await failAll(stage, ["a", "b", "c", "d"]);
  const { messages } = await stage.client.dlq.listMessages();
  const ids = messages.map(({ dlqId }) => dlqId);
  const byIds = await stage.api("POST", `/v2/dlq/retry?dlqIds=${ids[0]}`);
  expect(byIds).toMatchObject({ status: 201, json: { cursor: "", responses: [{ messageId: expect.any(String) }] } });
  expect((await stage.client.dlq.retry({ filter: { label: "b" } })).responses).toHaveLength(1);
  const page = await stage.client.dlq.retry({ all: true, count: 1 });
  expect(page).toMatchObject({ cursor: expect.any(String), responses: [expect.anything()] });
  const rest = await stage.client.dlq.retry({ all: true, count: 1, cursor: page.cursor ?? "" });
  expect([rest.responses.length, rest.cursor]).toEqual([1, undefined]);
  await settled(stage, 8);
  expect(stage.qstash.state().dlq).toBe(0);
});

test("a bulk retry that names an unknown letter is answered 404 and retries nothing", async () => {
  const stage = await setStage();
  await failAll(stage, ["a"]);
  const [letter] = (await stage.client.dlq.listMessages()).messages;
  expect((await stage.api("POST", `/v2/dlq/retry?dlqIds=${letter?.dlqId}&dlqIds=1-1`)).status).toBe(404);
  expect(stage.qstash.state().dlq).toBe(1);
});

test("letters are listed by filter and page, and deleted one, by ids or by filter", async () => {
  quietClient();
  const stage = await setStage();
  await failAll(stage, ["a", "b", "c"]);
  const first = await stage.client.dlq.listMessages({ count: 2 });
  const second = await stage.client.dlq.listMessages({ count: 2, cursor: first.cursor ?? "" });
  expect([first, second].map(({ messages }) => messages.map(({ labels }) => labels?.[0]))).toEqual([["a", "b"], ["c"]]);
  expect((await stage.client.dlq.listMessages({ filter: { responseStatus: 404 } })).messages).toEqual([]);
  expect((await stage.client.dlq.listMessages({ filter: { label: ["b", "c"] } })).messages).toHaveLength(2);

  const [a, b] = first.messages;
  expect(await stage.client.dlq.delete(a?.dlqId ?? "")).toEqual({ deleted: 1 });
  await expect(stage.client.dlq.delete(a?.dlqId ?? "")).rejects.toMatchObject({ status: 404 });
  expect(await stage.client.dlq.delete([b?.dlqId ?? ""])).toEqual({ deleted: 1 });
  expect(await stage.client.dlq.delete({ filter: { label: "c" } })).toEqual({ deleted: 1 });
  expect(stage.qstash.state().dlq).toBe(0);
});

test("an unknown filter is refused and deletes nothing", async () => {
  const stage = await setStage();
  await failAll(stage, ["a"]);
  expect((await stage.api("DELETE", "/v2/dlq?labeel=a")).status).toBe(400);
  expect((await stage.api("DELETE", "/v2/dlq?host=x")).status).toBe(400);
  expect(stage.qstash.state().dlq).toBe(1);
});
