import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { expect, it, vi } from "vitest";
import { z } from "zod";
import { startPostgres } from "@/sandbox/postgres/start-postgres";

const OWNER = fileURLToPath(new URL("./start-and-print.ts", import.meta.url));
const started = z.object({ dataDir: z.string(), redisUrl: z.string().nullable(), pid: z.number() });

it("leaves no server behind when its owner is killed, and the next start removes the files", async () => {
  const owner = spawn(process.execPath, ["--import", "tsx", OWNER], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = await once(createInterface(owner.stdout), "line");
  const { dataDir, redisUrl, pid } = started.parse(JSON.parse(String(line)));
  const servers = [Number((await readFile(path.join(dataDir, "postmaster.pid"), "utf8")).split("\n")[0])];
  if (redisUrl !== null) servers.push(await redisPid(redisUrl));
  expect(servers.map(isAlive)).not.toContain(false);

  process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(servers.map(isAlive)).not.toContain(true), { timeout: 20_000 });

  await (await startPostgres()).close();
  await expect(stat(dataDir)).rejects.toThrow("ENOENT");
});

async function redisPid(url: string): Promise<number> {
  const redis = new Redis(url);
  const [, pid] = /process_id:(\d+)/.exec(await redis.info("server")) ?? [];
  redis.disconnect();
  return Number(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
