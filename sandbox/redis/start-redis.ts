import { access, constants } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import getPort from "get-port";
import { startServerProcess } from "@/sandbox/server-process";

export type RedisServer =
  | { kind: "server"; url: string; close(): Promise<void> }
  /** No Redis on this machine: each front keeps a mock in its own memory. */
  | { kind: "mock"; close(): Promise<void> };

export type RedisOptions = {
  /** Absent: a free one. */
  port?: number | undefined;
  /** Uses this running server instead of starting one. */
  redisUrl?: string | undefined;
};

/** Logical databases, so that each test file can have one of its own. */
const DATABASES = 4096;

/**
 * Starts the `redis-server` or `valkey-server` that is on PATH, on 127.0.0.1, in memory only. Without either it says so
 * on stderr and leaves the work to a mock, which is slower and knows neither cjson nor WRONGTYPE.
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  if (options.redisUrl !== undefined) return { kind: "server", url: options.redisUrl, close: async () => undefined };
  const command = (await onPath("redis-server")) ?? (await onPath("valkey-server"));
  if (command === undefined) {
    process.stderr.write("No redis-server or valkey-server on PATH: using ioredis-mock, in memory.\n");
    return { kind: "mock", close: async () => undefined };
  }
  const port = options.port ?? (await getPort({ host: "127.0.0.1" }));
  const server = await startServerProcess({
    name: "Redis",
    command,
    args: [
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", tmpdir()],
      ...["--save", "", "--appendonly", "no", "--databases", String(DATABASES)],
    ],
    readyLine: /Ready to accept connections/,
  });
  return { kind: "server", url: `redis://127.0.0.1:${port}`, close: () => server.stop("SIGTERM") };
}

async function onPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? "").split(path.delimiter)) {
    const file = path.join(folder, name);
    const runnable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (folder !== "" && runnable) return file;
  }
  return undefined;
}
