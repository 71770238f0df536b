import { Client } from "@upstash/qstash";
import { describe, expect, test } from "vitest";
import { type Received, type Stage, setStage, settled, until } from "@/tests/sandbox/qstash/harness";

type Limits = { parallelism?: number; rate?: number; period?: `${bigint}s` };

/** Publishes `count` messages one after the other under one key; their paths are /0, /1, ... */
async function publishMany({ client, destination }: Stage, count: number, limits: Limits, key = "k", from = 0) {
  const { parallelism, rate, period } = limits;
  for (let index = from; index < from + count; index++) {
    await client.publish({
      url: `${destination.url}/${index}`,
      flowControl: {
        key,
        ...(period === undefined ? {} : { period }),
        ...(parallelism === undefined ? { rate: rate ?? 1 } : { parallelism, ...(rate === undefined ? {} : { rate }) }),
      },
    });
  }
}

function holdCalls({ destination }: Stage): Received[] {
  const held: Received[] = [];
  destination.respond = (call) => held.push(call);
  return held;
}

describe("parallelism", () => {
  test("never more calls at once than the key allows, and the rest waits in order", async () => {
    const stage = await setStage();
    const held = holdCalls(stage);
    await publishMany(stage, 12, { parallelism: 3 });
    await until(() => held.length === 3);
    expect(await stage.client.flowControl.get("k")).toMatchObject({
      flowControlKey: "k",
      waitListSize: 9,
      parallelismMax: 3,
      parallelismCount: 3,
      isPaused: false,
    });
    for (let answered = 0; answered < 12; answered++) {
      await until(() => held.length > answered);
      held[answered]?.response.end();
    }
    await settled(stage, 12);
    expect(stage.destination.mostAtOnce).toBe(3);
    const order = stage.qstash.state().deliveries.map(({ url }) => new URL(url).pathname);
    expect(order).toEqual(Array.from({ length: 12 }, (_, index) => `/${index}`));
  });

  test("a message that waits for its retry holds no slot", async () => {
    const stage = await setStage();
    stage.destination.respond = ({ path, response }) => response.writeHead(path === "/0" ? 503 : 200).end();
    await publishMany(stage, 2, { parallelism: 1 });
    await settled(stage, 2);
    expect(stage.qstash.state()).toMatchObject({ pending: 1, waiting: 0 });
    expect(await stage.client.flowControl.get("k")).toMatchObject({ parallelismCount: 0, waitListSize: 0 });
  });

  test("a retry joins the end of the wait list", async () => {
    const stage = await setStage();
    const held = holdCalls(stage);
    await publishMany(stage, 3, { parallelism: 1 });
    await until(() => held.length === 1);
    held[0]?.response.writeHead(503, { "Retry-After": "0" }).end();
    for (let index = 1; index < 4; index++) {
      await until(() => held.length === index + 1);
      held[index]?.response.end();
    }
    await settled(stage, 4);
    expect(held.map(({ path }) => path)).toEqual(["/0", "/1", "/2", "/0"]);
  });

  test("the plan's cap holds over all keys and over messages without one; the longest waiting goes first", async () => {
    const stage = await setStage({ globalParallelism: 4 });
    const held = holdCalls(stage);
    await publishMany(stage, 3, { parallelism: 10 }, "a");
    await publishMany(stage, 3, { parallelism: 10 }, "b", 3);
    await stage.client.publish({ url: `${stage.destination.url}/6` });
    await until(() => held.length === 4);
    expect(await stage.client.flowControl.getGlobalParallelism()).toEqual({ parallelismMax: 4, parallelismCount: 4 });
    expect(stage.qstash.state().waiting).toBe(3);
    for (let index = 0; index < 7; index++) {
      await until(() => held.length > index);
      held[index]?.response.end();
    }
    await settled(stage, 7);
    expect(stage.destination.mostAtOnce).toBe(4);
    const order = stage.qstash.state().deliveries.map(({ url }) => new URL(url).pathname);
    expect(order).toEqual(["/0", "/1", "/2", "/3", "/4", "/5", "/6"]);
  });

  test("a cancelled message leaves the wait list and takes no slot", async () => {
    const stage = await setStage();
    const held = holdCalls(stage);
    await publishMany(stage, 2, { parallelism: 1 });
    const { messageId } = await stage.client.publish({
      url: stage.destination.url,
      flowControl: { key: "k", parallelism: 1 },
    });
    await stage.client.messages.cancel(messageId);
    expect(await stage.client.flowControl.get("k")).toMatchObject({ waitListSize: 1 });
    for (let index = 0; index < 2; index++) {
      await until(() => held.length > index);
      held[index]?.response.end();
    }
    await settled(stage, 2);
    expect(stage.qstash.state()).toMatchObject({ waiting: 0, inFlight: 0 });
  });
});

describe("rate", () => {
  test("not more starts in a period than the rate; the rest goes in the next ones", async () => {
    const stage = await setStage();
    await publishMany(stage, 12, { rate: 5, period: "60s" });
    await settled(stage, 5);
    stage.qstash.clock.advance(59_999);
    await settled(stage, 5);
    expect(await stage.client.flowControl.get("k")).toMatchObject({
      rateMax: 5,
      rateCount: 5,
      ratePeriod: 60,
      waitListSize: 7,
    });
    stage.qstash.clock.advance(1);
    await settled(stage, 10);
    stage.qstash.clock.advance(60_000);
    await settled(stage, 12);
  });

  test("without a period the rate is per second", async () => {
    const stage = await setStage();
    await publishMany(stage, 3, { rate: 2 });
    await settled(stage, 2);
    stage.qstash.clock.advance(999);
    await settled(stage, 2);
    stage.qstash.clock.advance(1);
    await settled(stage, 3);
  });

  test("rate and parallelism hold together: with all slots taken no further period starts calls", async () => {
    const stage = await setStage();
    const held = holdCalls(stage);
    await publishMany(stage, 30, { rate: 10, parallelism: 20, period: "60s" });
    await until(() => held.length === 10);
    stage.qstash.clock.advance(60_000);
    await until(() => held.length === 20);
    stage.qstash.clock.advance(60_000);
    expect(stage.qstash.state()).toMatchObject({ inFlight: 20, waiting: 10 });
    held[0]?.response.end();
    await until(() => held.length === 21);
    expect(stage.destination.mostAtOnce).toBe(20);
  });

  test("resetting the rate ends the period at once", async () => {
    const stage = await setStage();
    await publishMany(stage, 4, { rate: 2, period: "60s" });
    await settled(stage, 2);
    await stage.client.flowControl.resetRate("k");
    await settled(stage, 4);
  });
});

describe("management", () => {
  test("the last message's limits hold for the whole key", async () => {
    const stage = await setStage();
    const held = holdCalls(stage);
    await publishMany(stage, 4, { parallelism: 1 });
    await until(() => held.length === 1);
    await publishMany(stage, 1, { parallelism: 3 }, "k", 4);
    await until(() => held.length === 3);
    expect(await stage.client.flowControl.get("k")).toMatchObject({
      parallelismMax: 3,
      parallelismCount: 3,
      waitListSize: 2,
    });
  });

  test("a paused key keeps its wait list and takes new messages; resuming sends them", async () => {
    const stage = await setStage();
    await stage.client.flowControl.pause("k");
    await publishMany(stage, 3, { parallelism: 5 });
    stage.qstash.clock.advance(3_600_000);
    expect(await stage.client.flowControl.get("k")).toMatchObject({ isPaused: true, waitListSize: 3 });
    expect(stage.qstash.state().deliveries).toEqual([]);
    await stage.client.flowControl.resume("k");
    await settled(stage, 3);
    expect(await stage.client.flowControl.get("k")).toMatchObject({ isPaused: false, waitListSize: 0 });
  });

  test("a pause of one key leaves the others alone", async () => {
    const stage = await setStage();
    await stage.client.flowControl.pause("a");
    await publishMany(stage, 1, { parallelism: 1 }, "a");
    await publishMany(stage, 1, { parallelism: 1 }, "b", 1);
    await settled(stage, 1);
    expect(stage.destination.received[0]?.path).toBe("/1");
  });

  test("while pinned, messages do not change the limits; unpinned, the values stay until a message brings others", async () => {
    const stage = await setStage();
    const { flowControl } = stage.client;
    await publishMany(stage, 1, { parallelism: 5, rate: 10, period: "60s" });
    await settled(stage, 1);
    await flowControl.pin("k", { parallelism: 3, rate: 20, period: 120 });
    const pinned = { parallelismMax: 3, rateMax: 20, ratePeriod: 120 };
    expect(await flowControl.get("k")).toMatchObject({
      ...pinned,
      rateCount: 0,
      isPinnedParallelism: true,
      isPinnedRate: true,
    });
    await publishMany(stage, 1, { parallelism: 5, rate: 10, period: "60s" });
    expect(await flowControl.get("k")).toMatchObject(pinned);
    await flowControl.unpin("k", { parallelism: true });
    expect(await flowControl.get("k")).toMatchObject({ ...pinned, isPinnedParallelism: false, isPinnedRate: true });
    await publishMany(stage, 1, { parallelism: 5, rate: 10, period: "60s" });
    expect(await flowControl.get("k")).toMatchObject({ parallelismMax: 5, rateMax: 20, ratePeriod: 120 });
  });

  test("a pinned parallelism is what deliveries keep to, whatever their messages bring", async () => {
    const stage = await setStage();
    const held = holdCalls(stage);
    await publishMany(stage, 1, { parallelism: 5 });
    await until(() => held.length === 1);
    await stage.client.flowControl.pin("k", { parallelism: 1 });
    await publishMany(stage, 2, { parallelism: 5 }, "k", 1);
    expect(await stage.client.flowControl.get("k")).toMatchObject({ parallelismCount: 1, waitListSize: 2 });
    for (let answered = 0; answered < 3; answered++) {
      await until(() => held.length > answered);
      held[answered]?.response.end();
    }
    await settled(stage, 3);
    expect(stage.destination.mostAtOnce).toBe(1);
  });

  test("an unknown key is answered 404, and a pin without a usable value 400", async () => {
    const { api } = await setStage();
    expect((await api("GET", "/v2/flowControl/unknown")).status).toBe(404);
    expect((await api("POST", "/v2/flowControl/k/pin")).status).toBe(400);
    expect((await api("POST", "/v2/flowControl/k/pin?rate=0")).status).toBe(400);
  });

  test("all keys are listed, with the one for messages without a key", async () => {
    const stage = await setStage();
    await publishMany(stage, 1, { parallelism: 1 }, "a");
    await stage.client.publish({ url: stage.destination.url });
    await settled(stage, 2);
    const { json } = await stage.api("GET", "/v2/flowControl");
    expect(json).toMatchObject([{ flowControlKey: "a" }, { flowControlKey: "$" }]);
  });
});

test("two clients with their own limits for one key overwrite each other: the last writer wins", async () => {
  const stage = await setStage();
  const preview = new Client({ baseUrl: stage.qstash.url, token: "token-of-the-test", devMode: false });
  await publishMany(stage, 1, { parallelism: 50 });
  await preview.publish({ url: stage.destination.url, flowControl: { key: "k", rate: 1 } });
  const info = await stage.client.flowControl.get("k");
  expect(info).toMatchObject({ rateMax: 1 });
  expect(info).not.toHaveProperty("parallelismMax");
});
