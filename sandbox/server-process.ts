import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import type { Readable } from "node:stream";

export type ServerProcess = {
  pid: number;
  /** Resolves when the server has ended, whoever ended it. */
  exited: Promise<void>;
  /** Asks the server to end with the given signal, after ten seconds with SIGKILL, and waits for its end. */
  stop(signal: NodeJS.Signals): Promise<void>;
};

export type ServerCommand = {
  /** For messages only: "Postgres", "Redis". */
  name: string;
  command: string;
  args: string[];
  /** The line of output by which the server says that it takes connections. */
  readyLine: RegExp;
  /** Unprivileged user to run as; absent: the current one. */
  user?: { uid: number; gid: number } | undefined;
};

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;

/**
 * Runs the server as this very process and beside it a watcher that holds our end of a pipe: when we die, however
 * that happens, the pipe closes and the watcher ends the server. After a server's own end we write a line, and the
 * watcher leaves without a signal. Not over stdin, which Node closes by itself when a child ends. POSIX shell, so Linux
 * and macOS.
 */
const RUN_UNTIL_PARENT_DIES = '(read -r _ <&3 || kill -s INT $$) & exec "$@" 3<&-';

export type TiedProcess = {
  child: ChildProcess;
  stdout: Readable;
  stderr: Readable;
  /** Resolves when it has ended, whoever ended it. */
  exited: Promise<void>;
};

type TiedOptions = { cwd: string; env: NodeJS.ProcessEnv; user?: { uid: number; gid: number } | undefined };

/**
 * Starts a process that never outlives this one. It lives in a process group of its own, so that a Ctrl-C at the
 * terminal reaches it only through its owner, in the owner's order.
 */
export function spawnTied(command: string, args: string[], { cwd, env, user }: TiedOptions): TiedProcess {
  const child = spawn("/bin/sh", ["-c", RUN_UNTIL_PARENT_DIES, "sh", command, ...args], {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    detached: true,
    cwd,
    env,
    ...user,
  });
  const { stdout, stderr } = child;
  const tie = child.stdio[3];
  if (stdout === null || stderr === null || !(tie instanceof Socket)) throw new Error(`${command} has no pipes`);
  tie.on("error", () => undefined);
  const exited = once(child, "exit").then(() => {
    tie.end("ended\n");
  });
  return { child, stdout, stderr, exited };
}

/**
 * Starts a server and waits for its ready line.
 * @throws with the last output of the server when it ends, or says nothing, before it is ready
 */
export async function startServerProcess(server: ServerCommand): Promise<ServerProcess> {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const { child, stdout, stderr, exited } = spawnTied(server.command, server.args, {
    cwd: "/",
    env,
    user: server.user,
  });

  let output = "";
  const ready = new Promise<void>((resolve) => {
    const read = (chunk: string) => {
      output = (output + chunk).slice(-4000);
      if (server.readyLine.test(output)) resolve();
    };
    stdout.setEncoding("utf8").on("data", read);
    stderr.setEncoding("utf8").on("data", read);
  });
  const outcome = await withTimeLimit(
    START_TIMEOUT_MS,
    Promise.race([ready.then(() => "ready" as const), exited.then(() => "ended" as const)]),
  );
  const { pid } = child;
  if (outcome === "ready" && pid !== undefined) {
    return {
      pid,
      exited,
      async stop(signal) {
        child.kill(signal);
        if ((await withTimeLimit(STOP_TIMEOUT_MS, exited)) === "late") child.kill("SIGKILL");
        await exited;
      },
    };
  }
  child.kill("SIGKILL");
  const what = outcome === "ended" ? "ended before it was ready" : `was not ready within ${START_TIMEOUT_MS / 1000} s`;
  throw new Error(`${server.name} (${server.command}) ${what}. Its last output:\n${output}`);
}

async function withTimeLimit<T>(ms: number, promise: Promise<T>): Promise<T | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
