import { Redis } from "ioredis";
import { afterEach, describe, expect, it, vi } from "vitest";
import { startRedis } from "@/sandbox/redis/start-redis";

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

async function ping(url: string): Promise<string> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  redis.on("error", () => undefined);
  try {
    await redis.connect();
    return await redis.ping();
  } finally {
    redis.disconnect();
  }
}

describe("the Redis of the sandbox", () => {
  it("is there after start and gone after close", async () => {
    const redis = await startRedis();
    if (redis.kind !== "server") throw new Error("This test needs a redis-server or valkey-server on PATH.");
    expect(await ping(redis.url)).toBe("PONG");
    await redis.close();
    await expect(ping(redis.url)).rejects.toThrow();
  });

  it("leaves a server that was given as it is", async () => {
    const given = await startRedis();
    if (given.kind !== "server") throw new Error("This test needs a redis-server or valkey-server on PATH.");
    await (await startRedis({ redisUrl: given.url })).close();
    expect(await ping(given.url)).toBe("PONG");
    await given.close();
  });

  it("is a mock where PATH has none, and says so", async () => {
    vi.stubEnv("PATH", "/nowhere");
    const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    expect((await startRedis()).kind).toBe("mock");
    expect(written).toHaveBeenCalledWith(expect.stringContaining("No redis-server"));
  });
});
