import { Client, Receiver } from "@upstash/qstash";
import { expect, test } from "vitest";
import {
  CURRENT_KEY,
  quietClient,
  type Received,
  setStage,
  settled,
  TOKEN,
  until,
} from "@/tests/sandbox/qstash/harness";

test("the state counts the requests of clients by kind, and not those of the control API", async () => {
  const stage = await setStage();
  await stage.client.publish({ url: `${stage.destination.url}/a?x=1` });
  await stage.client.batch([{ url: `${stage.destination.url}/a` }, { url: `${stage.destination.url}/b`, delay: 60 }]);
  await stage.client.messages.cancel("none").catch(() => undefined);
  await settled(stage, 2);
  const state = await (await fetch(`${stage.qstash.url}/_sim/state`)).json();
  expect(state).toMatchObject({
    requests: 3,
    requestsByKind: { publish: 1, batch: 1, messages: 1 },
    published: 3,
    pending: 1,
    waiting: 0,
    inFlight: 0,
    dlq: 0,
    deliveriesByPath: { "/a": 2 },
  });
  expect(state.deliveries[0]).toEqual({
    messageId: expect.stringMatching(/^msg_/),
    url: `${stage.destination.url}/a?x=1`,
    status: 200,
    retried: 0,
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    clockMs: expect.any(Number),
  });
});

test("a reset drops messages, counters, limits, faults and remembered ids, and cuts calls under way", async () => {
  const stage = await setStage();
  let cut = 0;
  stage.destination.respond = ({ response }) => response.on("close", () => cut++);
  const publish = (deduplicationId: string) =>
    stage.client.publish({
      url: stage.destination.url,
      deduplicationId,
      failureCallback: `${stage.destination.url}/failed`,
      flowControl: { key: "k", parallelism: 1 },
    });
  await publish("one");
  await publish("two");
  await until(() => stage.destination.received.length === 1);
  stage.qstash.faults.set({ publish: { status: 500 } });
  await fetch(`${stage.qstash.url}/_sim/reset`, { method: "POST" });
  await until(() => cut === 1);
  expect(stage.qstash.state()).toMatchObject({
    requests: 0,
    published: 0,
    deliveries: [],
    deliveriesByPath: {},
    pending: 0,
    waiting: 0,
    inFlight: 0,
    flowControl: [],
    faults: {},
  });
  stage.qstash.clock.advance(86_400_000);
  stage.destination.respond = ({ response }) => response.end();
  expect(await publish("one")).not.toHaveProperty("deduplicated");
  await settled(stage, 2);
});

test("the clock is scaled and advanced over HTTP", async () => {
  const stage = await setStage();
  const clock = (body: unknown) =>
    fetch(`${stage.qstash.url}/_sim/clock`, { method: "POST", body: JSON.stringify(body) });
  await stage.client.publish({ url: stage.destination.url, delay: 60 });
  await clock({ advanceMs: 60_000 });
  await settled(stage, 1);
  await stage.client.publish({ url: stage.destination.url, delay: 60 });
  await clock({ timeScale: 6_000 });
  await settled(stage, 2);
  expect((await clock({ advanceMs: -1 })).status).toBe(400);
  expect((await clock({})).status).toBe(400);
});

test("an unknown fault is refused, so that a typing mistake does not pass for a test", async () => {
  const stage = await setStage();
  const post = (body: unknown) =>
    fetch(`${stage.qstash.url}/_sim/faults`, { method: "POST", body: JSON.stringify(body) });
  expect((await post({ publsh: { status: 500 } })).status).toBe(400);
  expect((await post({ publish: { status: 500, times: 1 } })).status).toBe(200);
  expect(stage.qstash.faults.current).toEqual({ publish: { status: 500, times: 1 } });
});

test("fault status: publishing is answered so, as often as asked, and stores nothing", async () => {
  quietClient();
  const stage = await setStage();
  stage.qstash.faults.set({ publish: { status: 503, times: 2 } });
  const publish = () => stage.client.publish({ url: stage.destination.url });
  await expect(publish()).rejects.toMatchObject({ status: 503 });
  await expect(publish()).rejects.toMatchObject({ status: 503 });
  await publish();
  await settled(stage, 1);
  expect(stage.qstash.state().published).toBe(1);
});

test("fault hang: publishing is never answered and stores nothing", async () => {
  const stage = await setStage();
  stage.qstash.faults.set({ publish: { hang: true, times: 1 } });
  const abort = new AbortController();
  const hanging = fetch(`${stage.qstash.url}/v2/publish/${stage.destination.url}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${TOKEN}` },
    signal: abort.signal,
  });
  await until(() => stage.qstash.state().requests === 1);
  expect(stage.qstash.state()).toMatchObject({ published: 0, deliveries: [] });
  abort.abort();
  await expect(hanging).rejects.toThrow();
});

test("fault acknowledgeAndLose: the answer is 200, the message never comes, and its id is taken", async () => {
  const stage = await setStage();
  stage.qstash.faults.set({ publish: { acknowledgeAndLose: true, times: 1 } });
  const publish = () => stage.client.publish({ url: stage.destination.url, deduplicationId: "job-1" });
  const { messageId } = await publish();
  expect(await publish()).toMatchObject({ messageId, deduplicated: true });
  stage.qstash.clock.advance(86_400_000);
  expect(stage.qstash.state()).toMatchObject({ pending: 0, waiting: 0, deliveries: [] });
});

test("fault storeAndDropAnswer: the client posts again, which makes a second message unless it has an id", async () => {
  quietClient();
  const stage = await setStage();
  const client = new Client({ baseUrl: stage.qstash.url, token: TOKEN, devMode: false, retry: { backoff: () => 1 } });
  const drop = { publish: { storeAndDropAnswer: true, times: 1 } };
  stage.qstash.faults.set(drop);
  await client.publish({ url: `${stage.destination.url}/without` });
  await settled(stage, 2);
  stage.qstash.faults.set(drop);
  expect(await client.publish({ url: `${stage.destination.url}/with`, deduplicationId: "job-1" })).toMatchObject({
    deduplicated: true,
  });
  await settled(stage, 3);
  expect(stage.qstash.state().deliveriesByPath).toEqual({ "/without": 2, "/with": 1 });
});

test("fault duplicate: each message comes twice with one id, both under the limits, and is settled once", async () => {
  const stage = await setStage();
  const held: Received[] = [];
  stage.destination.respond = (call) => held.push(call);
  stage.qstash.faults.set({ deliver: { duplicate: true } });
  const callback = `${stage.destination.url}/called`;
  const { messageId } = await stage.client.publish({
    url: `${stage.destination.url}/job`,
    callback,
    flowControl: { key: "k", parallelism: 1 },
  });
  await until(() => held.length === 1);
  expect(await stage.client.flowControl.get("k")).toMatchObject({ waitListSize: 1, parallelismCount: 1 });
  stage.qstash.faults.set({});
  held[0]?.response.end();
  await until(() => held.length === 3);
  for (const call of held) call.response.end();
  await settled(stage, 3);
  const jobs = held.filter(({ path }) => path === "/job");
  expect(jobs.map(({ headers }) => headers["upstash-message-id"])).toEqual([messageId, messageId]);
  expect(jobs.map(({ headers }) => headers["upstash-retried"])).toEqual(["0", "0"]);
  expect(stage.qstash.state().deliveriesByPath).toEqual({ "/job": 2, "/called": 1 });
});

test("fault signWithNextKey and skewSeconds: the receiver takes the next key, and a skew only within its tolerance", async () => {
  const stage = await setStage();
  const url = stage.destination.url;
  stage.qstash.faults.set({ deliver: { signWithNextKey: true } });
  await stage.client.publish({ url, body: "b" });
  await settled(stage, 1);
  stage.qstash.faults.set({ deliver: { skewSeconds: 4 } });
  await stage.client.publish({ url, body: "b" });
  await settled(stage, 2);
  const [nextKey, skewed] = stage.destination.received.map(({ headers }) => String(headers["upstash-signature"]));
  expect(await stage.receiver.verify({ signature: nextKey ?? "", body: "b", url })).toBe(true);
  const behind = new Receiver({ currentSigningKey: CURRENT_KEY, nextSigningKey: "sig_of_before", devMode: false });
  await expect(behind.verify({ signature: nextKey ?? "", body: "b", url })).rejects.toThrow();
  await expect(stage.receiver.verify({ signature: skewed ?? "", body: "b", url })).rejects.toThrow();
  expect(await stage.receiver.verify({ signature: skewed ?? "", body: "b", url, clockTolerance: 5 })).toBe(true);
});

test("outage: the API cuts every connection and nothing is delivered; afterwards what was stored is sent", async () => {
  quietClient();
  const stage = await setStage();
  await stage.client.publish({ url: stage.destination.url, delay: 60 });
  stage.qstash.faults.set({ outage: true });
  await expect(stage.client.publish({ url: stage.destination.url })).rejects.toThrow("fetch failed");
  stage.qstash.clock.advance(3_600_000);
  expect(stage.qstash.state()).toMatchObject({ waiting: 1, deliveries: [], published: 1 });
  stage.qstash.faults.set({});
  await settled(stage, 1);
});

test("stall: messages are taken and none is delivered; afterwards all that are due are sent", async () => {
  const stage = await setStage();
  stage.qstash.faults.set({ stall: true });
  await stage.client.publish({ url: stage.destination.url });
  stage.qstash.clock.advance(120_000);
  await stage.client.publish({ url: stage.destination.url, delay: 60 });
  expect(stage.qstash.state()).toMatchObject({ waiting: 1, pending: 1, deliveries: [], published: 2 });
  stage.qstash.faults.set({});
  await settled(stage, 1);
});
