import { Redis } from "@upstash/redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisFront, startRedisFront } from "@/sandbox/redis/start-redis-front";

describe("the mock, where no Redis is installed", () => {
  let front: RedisFront;
  let other: RedisFront;
  let redis: Redis;

  beforeAll(async () => {
    [front, other] = await Promise.all([startRedisFront(), startRedisFront()]);
    redis = new Redis({ url: front.url, token: front.token, enableAutoPipelining: false });
  });
  afterAll(() => Promise.all([front.close(), other.close()]));

  it("claims a key once, with options in lower case as the client sends them", async () => {
    expect(await redis.set("claim", "mine", { nx: true, ex: 60 })).toBe("OK");
    expect(await redis.set("claim", "yours", { nx: true, ex: 60 })).toBeNull();
    expect(await redis.get("claim")).toBe("mine");
  });

  it("runs scripts by digest after the first time", async () => {
    const script = redis.createScript<string>("return redis.call('GET', KEYS[1])");
    await redis.set("k", "grün");
    expect(await script.exec(["k"], [])).toBe("grün");
    expect(await script.exec(["k"], [])).toBe("grün");
  });

  it("answers hashes flat, unknown commands as errors, and pipelines in order", async () => {
    await redis.hset("h", { a: "x", b: "y" });
    expect(await redis.hgetall("h")).toEqual({ a: "x", b: "y" });
    const unknown = await fetch(front.url, {
      method: "POST",
      headers: { authorization: `Bearer ${front.token}` },
      body: '["nonsense"]',
    });
    expect(unknown.status).toBe(400);
    expect(await redis.pipeline().set("n", 1).incr("n").get("n").exec()).toEqual(["OK", 2, 2]);
  });

  it("shares nothing with the mock of another front", async () => {
    await redis.set("k", "v");
    expect(await new Redis({ url: other.url, token: other.token }).get("k")).toBeNull();
  });
});
