import { createWriteStream } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { spawnTied, type TiedProcess } from "@/sandbox/server-process";
import { NEXT, PROJECT } from "@/sandbox/stack/build-app";
import type { Closers } from "@/sandbox/stack/closers";
import { endGroup, hasEnded, killGroup } from "@/sandbox/stack/end-group";

export type AppMode = "dev" | "start";

export type RunningApp = {
  url: string;
  /** Of the process that runs now; another one after a restart. */
  pid(): number;
  /** SIGKILL, as a crash: the app is started again. */
  kill(): void;
};

export type AppOptions = {
  mode: AppMode;
  port: number;
  env: NodeJS.ProcessEnv;
  /** Gets everything that the app prints. */
  logFile: string;
  closers: Closers;
};

const HOST = "127.0.0.1";

/** Asked without credentials they answer 400 or 401 before any work, but by then Next.js has loaded their code. */
const ROUTES: readonly (readonly ["GET" | "POST", string])[] = [
  ["POST", "/api/snaptrade/webhook"],
  ["POST", "/api/internal/process-snaptrade-holdings-sync"],
  ["POST", "/api/internal/process-snaptrade-transactions-sync"],
  ["POST", "/api/internal/snaptrade-sync-failed"],
  ["POST", "/api/cron/process-stale-snaptrade"],
  ["GET", "/api/cron/schedule-stale-snaptrade"],
  ["GET", "/api/cron/reconcile-snaptrade"],
  ["GET", "/api/metrics"],
];
/** The first request of `next dev` compiles its route. */
const READY_LIMIT_MS = 90_000;
const RESTART_PAUSE_MS = 250;

/**
 * Runs the app until everything is closed: one that dies is started again, after a pause that grows while it dies at
 * once.
 * @throws when the first start does not come up: the app refused its environment, and its last lines say why
 */
export async function runApp({ mode, port, env, logFile, closers }: AppOptions): Promise<RunningApp> {
  const url = `http://${HOST}:${port}`;
  const log = createWriteStream(logFile, { flags: "a" });
  let closing = false;
  let lastOutput = "";
  let current = launch();

  function launch(): TiedProcess {
    const args = [NEXT, mode, "--port", String(port), "--hostname", HOST];
    const started = spawnTied(process.execPath, args, { cwd: PROJECT, env });
    for (const stream of [started.stdout, started.stderr]) {
      stream.pipe(log, { end: false });
      stream.setEncoding("utf8").on("data", (text: string) => {
        lastOutput = (lastOutput + text).slice(-3000);
      });
    }
    return started;
  }

  async function comesUp(app: TiedProcess): Promise<boolean> {
    const until = Date.now() + READY_LIMIT_MS;
    while (Date.now() < until && !hasEnded(app) && !closing) {
      if (await answers(url)) return true;
      await Promise.race([sleep(50), app.exited]);
    }
    return false;
  }

  async function keepRunning(): Promise<void> {
    let failures = 0;
    while (!closing) {
      await current.exited;
      killGroup(current);
      if (closing) return;
      process.stderr.write(`The app (process ${current.child.pid}) ended; starting it again.\n`);
      await sleep(RESTART_PAUSE_MS * 2 ** Math.min(failures, 6));
      if (closing) return;
      current = launch();
      failures = (await comesUp(current)) ? 0 : failures + 1;
      if (failures > 0 && !closing) process.stderr.write(`The app did not come up again. It said:\n${lastOutput}\n`);
    }
  }

  async function close(): Promise<void> {
    closing = true;
    await endGroup(current);
    log.end();
  }

  closers.add("the app", close);
  if (!(await comesUp(current))) throw new Error(`The app did not start. It said:\n${lastOutput}`);
  // The first event should not wait for it. In development each would be compiled, which takes seconds.
  if (mode === "start") await Promise.all(ROUTES.map(([method, path]) => answers(url, path, method)));
  void keepRunning();
  return { url, pid: () => current.child.pid ?? 0, kill: () => killGroup(current) };
}

async function answers(url: string, path = "/api/health", method = "GET"): Promise<boolean> {
  try {
    const response = await fetch(`${url}${path}`, { method, signal: AbortSignal.timeout(20_000) });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}
