import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { APP_COPY } from "@/bench/intake/build-with-routes";
import { spawnTied } from "@/sandbox/server-process";
import { appEnv, appSettings } from "@/sandbox/stack/app-env";
import { NEXT } from "@/sandbox/stack/build-app";
import { endGroup, hasEnded } from "@/sandbox/stack/end-group";

export type App = { url: string; pid: number; close(): Promise<void> };
export type AppOptions = {
  port: number;
  env: Record<string, string>;
  /** For Node, such as `--cpu-prof`. */
  nodeOptions?: string[];
};

const READY_LIMIT_MS = 60_000;

/**
 * `next start` of the copy, once: a process that dies in a measurement must not be replaced unseen. Its log goes to a file
 * of its own, which stays when it does not come up.
 * @throws when it does not come up
 */
export async function startApp({ port, env, nodeOptions = [] }: AppOptions): Promise<App> {
  const url = `http://127.0.0.1:${port}`;
  const logFile = path.join(tmpdir(), `snaptrade-intake-${process.pid}-${port}.log`);
  const log = createWriteStream(logFile);
  const args = [...nodeOptions, NEXT, "start", "--port", String(port), "--hostname", "127.0.0.1"];
  const app = spawnTied(process.execPath, args, { cwd: APP_COPY, env: appEnv("start", appSettings(env, {})) });
  app.stdout.pipe(log, { end: false });
  app.stderr.pipe(log, { end: false });

  async function close(): Promise<void> {
    await endGroup(app);
    log.end();
    await rm(logFile, { force: true });
  }

  const until = Date.now() + READY_LIMIT_MS;
  while (!hasEnded(app) && Date.now() < until) {
    if (await answers(url)) return { url, pid: app.child.pid ?? 0, close };
    await sleep(50);
  }
  await endGroup(app);
  log.end();
  throw new Error(`The app did not start; its log: ${logFile}`);
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/api/health`, { signal: AbortSignal.timeout(5_000) });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}
