import { expect, test } from "vitest";
import { type Received, setStage, settled, until } from "@/tests/sandbox/qstash/harness";

test("a queue delivers one message after the other, in order", async () => {
  const stage = await setStage();
  const held: Received[] = [];
  stage.destination.respond = (call) => held.push(call);
  const queue = stage.client.queue({ queueName: "q" });
  for (const path of ["/0", "/1", "/2"]) await queue.enqueueJSON({ url: stage.destination.url + path, body: { path } });
  expect(await queue.get()).toMatchObject({ name: "q", parallelism: 1, lag: 3 });
  for (let index = 0; index < 3; index++) {
    await until(() => held.length === index + 1);
    held[index]?.response.end();
  }
  await settled(stage, 3);
  expect(stage.destination.mostAtOnce).toBe(1);
  expect(held.map(({ path }) => path)).toEqual(["/0", "/1", "/2"]);
});

test("the next message waits for the retries and the failure callback of the one before", async () => {
  const stage = await setStage();
  stage.destination.respond = ({ path, response }) => response.writeHead(path === "/0" ? 500 : 200).end();
  const queue = stage.client.queue({ queueName: "q" });
  const failureCallback = `${stage.destination.url}/failed`;
  await queue.enqueue({
    url: `${stage.destination.url}/0`,
    retries: 1,
    retryDelay: "1000",
    failureCallback,
    headers: { "Upstash-Failure-Callback-Delay": "5s" },
  });
  await queue.enqueue({ url: `${stage.destination.url}/1` });
  await settled(stage, 1);
  stage.qstash.clock.advance(1_000);
  await settled(stage, 2);
  expect(stage.qstash.state()).toMatchObject({ pending: 1, waiting: 1 });
  stage.qstash.clock.advance(5_000);
  await settled(stage, 4);
  expect(stage.destination.received.map(({ path }) => path)).toEqual(["/0", "/0", "/failed", "/1"]);
});

test("parallelism of a queue can be set, and a paused queue delivers nothing until it is resumed", async () => {
  const stage = await setStage();
  const held: Received[] = [];
  stage.destination.respond = (call) => held.push(call);
  const queue = stage.client.queue({ queueName: "q" });
  await queue.upsert({ parallelism: 2, paused: true });
  for (const path of ["/0", "/1", "/2"]) await queue.enqueue({ url: stage.destination.url + path });
  expect(stage.qstash.state()).toMatchObject({ waiting: 3, deliveries: [] });
  await queue.resume();
  await until(() => held.length === 2);
  expect(stage.qstash.state()).toMatchObject({ waiting: 1, inFlight: 2 });
  for (let index = 0; index < 3; index++) {
    await until(() => held.length > index);
    held[index]?.response.end();
  }
  await settled(stage, 3);
  expect(stage.destination.mostAtOnce).toBe(2);
});

test("a cancelled message makes room for the next one", async () => {
  const stage = await setStage();
  stage.destination.respond = ({ response }) => response.writeHead(500).end();
  const queue = stage.client.queue({ queueName: "q" });
  const { messageId } = await queue.enqueue({ url: `${stage.destination.url}/0` });
  await queue.enqueue({ url: `${stage.destination.url}/1`, retries: 0 });
  await settled(stage, 1);
  await stage.client.messages.cancel(messageId);
  await settled(stage, 2);
});

test("a queue name with other characters is refused, and an unknown queue is answered 404", async () => {
  const { api, destination } = await setStage();
  expect((await api("POST", `/v2/enqueue/a%20b/${destination.url}`)).status).toBe(400);
  expect((await api("GET", "/v2/queues/unknown")).status).toBe(404);
});
