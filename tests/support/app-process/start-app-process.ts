import { fork } from "node:child_process";
import { once } from "node:events";
import { type Order, type Report, report } from "@/tests/support/app-process/protocol";

export type AppProcess = {
  pid: number;
  /** Resolves when its code is loaded. */
  ready: Promise<void>;
  /** Resolves when it has ended; how. */
  exited: Promise<NodeJS.Signals | number | null>;
  /** Gives an order and waits until it has effect. Rejects if the process ends first. */
  tell(order: Order): Promise<void>;
  /** Resolves when a point that was armed with `hold` is reached. */
  held(): Promise<void>;
  /** Its last lines. */
  output(): string;
  kill(): Promise<void>;
};

/** Starts the bundled service. It ends with this process: its channel closes then. */
export function startAppProcess(file: string): AppProcess {
  const child = fork(file, { stdio: ["ignore", "pipe", "pipe", "ipc"], env: { ...process.env, NODE_ENV: "test" } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-20_000);
    });
  }
  const exited = once(child, "exit").then(([code, signal]) => signal ?? code);
  const waiting: Record<Report["is"], (() => void)[]> = { ready: [], done: [], held: [] };
  child.on("message", (message) => waiting[report.parse(message).is].shift()?.());
  const next = (is: Report["is"]) => {
    const reported = new Promise<void>((resolve, reject) => {
      waiting[is].push(resolve);
      void exited.then((how) =>
        reject(new Error(`The app ended (${how}) while it was waited for (${is}):\n${output}`)),
      );
    });
    // Whoever waits sees it all the same.
    reported.catch(() => undefined);
    return reported;
  };
  const ready = next("ready");
  return {
    pid: child.pid ?? 0,
    ready,
    exited,
    async tell(order) {
      const done = next("done");
      child.send(order, () => undefined);
      await done;
    },
    held: () => next("held"),
    output: () => output,
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
