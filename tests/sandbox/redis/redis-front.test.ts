import { Redis } from "@upstash/redis";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { type RedisFront, startRedisFront } from "@/sandbox/redis/start-redis-front";
import { askForRedis } from "@/tests/support/shared-services";

let front: RedisFront;
let redis: Redis;

beforeAll(async () => {
  const { redisUrl, database } = await askForRedis(inject("sharedServicesUrl"));
  front = await startRedisFront({ redisUrl: redisUrl ?? undefined, database });
  redis = new Redis({ url: front.url, token: front.token, retry: { retries: 0 }, enableAutoPipelining: false });
});
afterEach(async () => {
  front.clearFaults();
  await front.flush();
});
afterAll(() => front.close());

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(front.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${front.token}`, ...headers },
    body: JSON.stringify(body),
  });

describe("the wire protocol", () => {
  it("refuses a wrong token with 401 and touches nothing", async () => {
    const response = await post("/", ["set", "k", "v"], { authorization: "Bearer wrong" });
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual({ error: expect.stringMatching(/^WRONGPASS/) });
    expect(await redis.get("k")).toBeNull();
  });

  it("turns numbers and booleans into words", async () => {
    await post("/", ["set", "k", 12.5]);
    await post("/", ["set", "b", true]);
    expect(await (await post("/", ["mget", "k", "b"])).json()).toEqual({ result: ["12.5", "true"] });
  });

  it("encodes strings as base64 on demand, nested ones too, but neither numbers nor null nor OK", async () => {
    const base64 = { "upstash-encoding": "base64" };
    expect(await (await post("/", ["set", "k", "é"], base64)).json()).toEqual({ result: "OK" });
    const script = "return {KEYS[1], 7, false, {ARGV[1]}}";
    const reply = await (await post("/", ["eval", script, 1, "k", "é"], base64)).json();
    expect(reply).toEqual({ result: ["aw==", 7, null, ["w6k="]] });
  });

  it("answers an error of Redis with 400 and its text", async () => {
    await redis.set("k", "text");
    const response = await post("/", ["incr", "k"]);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: "ERR value is not an integer or out of range" });
  });

  it("answers what is no command with 400", async () => {
    for (const [path, body] of [
      ["/", {}],
      ["/", []],
      ["/pipeline", []],
      ["/pipeline", ["get", "k"]],
    ] as const) {
      expect((await post(path, body)).status).toBe(400);
    }
  });

  it.each([
    ["blpop", "list", 0],
    ["subscribe", "channel"],
    ["xread", "block", 0, "streams", "s", "$"],
    ["select", 1],
    ["config", "set", "maxmemory", 1],
  ])("refuses %s, which would block or reach beyond the database", async (...command) => {
    const response = await post("/", command);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: expect.stringMatching(/^ERR Command is not available/) });
  });

  it("counts requests and commands", async () => {
    const before = await (await fetch(`${front.url}/_sim/state`)).json();
    await post("/pipeline", [
      ["get", "a"],
      ["get", "b"],
    ]);
    const after = await (await fetch(`${front.url}/_sim/state`)).json();
    expect(after.requests - before.requests).toBe(1);
    expect(after.commands - before.commands).toBe(2);
    expect(after.byCommand.GET - (before.byCommand.GET ?? 0)).toBe(2);
  });
});

describe("the client of Upstash", () => {
  it.each([true, false])("works with automatic pipelining %s", async (enableAutoPipelining) => {
    const client = new Redis({ url: front.url, token: front.token, enableAutoPipelining });
    expect(await client.set("k", "v", { nx: true, ex: 60 })).toBe("OK");
    expect(await client.set("k", "w", { nx: true, ex: 60 })).toBeNull();
    expect(await Promise.all([client.get("k"), client.ttl("k"), client.get("none")])).toEqual(["v", 60, null]);
    await client.hset("h", { a: 1, b: "zwei" });
    expect(await client.hgetall("h")).toEqual({ a: 1, b: "zwei" });
  });

  it("gets text back as it was: other alphabets, control characters, what looks like base64", async () => {
    const raw = new Redis({ url: front.url, token: front.token, automaticDeserialization: false });
    for (const text of ["Grüße 👋 中文", "\u0000\u0001\n\r\t", "abcd", "OK", "QUJD", "", "12.50"]) {
      await raw.set("k", text);
      expect(await raw.get("k")).toBe(text);
      expect(await raw.mget("k", "k")).toEqual([text, text]);
    }
  });

  it("runs a script by its digest, sending the script itself only when Redis does not know it", async () => {
    const script = redis.createScript<[string, number]>(`return {ARGV[1], 40 + 2} -- ${front.url}`);
    expect(await script.exec([], ["a"])).toEqual(["a", 42]);
    const before = front.requests();
    expect(await script.exec([], ["b"])).toEqual(["b", 42]);
    expect(front.requests() - before).toBe(1);
  });

  it("runs a script with the flag that only Upstash knows, by its digest too", async () => {
    const script = redis.createScript<string>(
      `#!lua flags=allow-key-locking\nreturn redis.call('GET', KEYS[1]) -- ${front.url}`,
    );
    await redis.set("k", "v");
    expect(await script.exec(["k"], [])).toBe("v");
    const before = front.requests();
    expect(await script.exec(["k"], [])).toBe("v");
    expect(front.requests() - before).toBe(1);
  });

  it("carries on with a pipeline after an item that fails", async () => {
    const pipeline = redis.pipeline().set("k", "text").incr("k").get("k");
    expect(await pipeline.exec({ keepErrors: true })).toEqual([
      { result: "OK", error: undefined },
      { result: undefined, error: expect.stringContaining("not an integer") },
      { result: "text", error: undefined },
    ]);
  });

  it("runs a transaction as one, and none of it when Redis refuses a part", async () => {
    expect(await redis.multi().set("n", 1).incr("n").exec()).toEqual(["OK", 2]);
    const refused = await post("/multi-exec", [
      ["set", "n", 5],
      ["set", "n"],
    ]);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toEqual({ error: expect.stringMatching(/^EXECABORT/) });
    expect(await redis.get("n")).toBe(2);
  });

  it("never mixes the commands of two transactions", async () => {
    const count = 30;
    const results = await Promise.all(
      Array.from({ length: count }, () => redis.multi().incr("n").get("n").exec<[number, number]>()),
    );
    for (const [incremented, read] of results) expect(read).toBe(incremented);
    expect(await redis.get("n")).toBe(count);
  });
});

describe("faults", () => {
  it("drops the reply of a command that was carried out", async () => {
    front.fault({ dropReply: 1 });
    await expect(redis.incr("n")).rejects.toThrow("fetch failed");
    expect(await redis.get("n")).toBe(1);
  });

  it("lets the client carry a command out twice, as it does on a lost reply", async () => {
    const client = new Redis({ url: front.url, token: front.token, retry: { retries: 1, backoff: () => 0 } });
    front.fault({ dropReply: 1 });
    expect(await client.incr("n")).toBe(2);
  });

  it("is away during an outage, until it ends", async () => {
    front.fault({ outage: true });
    await expect(redis.set("k", "v")).rejects.toThrow("fetch failed");
    await expect(redis.get("k")).rejects.toThrow("fetch failed");
    front.fault({ outage: false });
    expect(await redis.get("k")).toBeNull();
  });

  it("refuses to write, but reads, when memory is out", async () => {
    await redis.set("k", "v");
    front.fault({ oom: true });
    await expect(redis.set("k", "w")).rejects.toThrow("OOM");
    expect(await redis.get("k")).toBe("v");
  });

  it("takes faults over HTTP, for the requests after some, so many times", async () => {
    const fault = { status: 503, body: "<html>busy</html>", after: 1, times: 2 };
    const taken = await post("/_sim/faults", fault);
    expect(taken.status).toBe(200);
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await post("/", ["get", "k"])).status);
    expect(statuses).toEqual([200, 503, 503, 200]);
  });

  it("refuses a fault that it does not know, and says why", async () => {
    const response = await post("/_sim/faults", { dropReplies: 1 });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("dropReplies");
  });
});
