import { fork } from "node:child_process";
import { once } from "node:events";
import { type Order, type Report, report } from "@/bench/child/protocol";
import { usageOf } from "@/bench/child/usage";
import type { Parts, Running, Usage } from "@/bench/contestant";
import type { ContestantName } from "@/bench/contestants/all";
import { createPoster } from "@/sandbox/demo/post-webhook";
import { CONNECTIONS } from "@/sandbox/demo/replay-storm";

const MAIN = new URL("./main.ts", import.meta.url);
type Child = ReturnType<typeof launch>;

/** Runs the contestant; where it will be killed, a second process stands ready to take over, as an instance does elsewhere. */
export async function startChild(contestant: ContestantName, parts: Parts): Promise<Running> {
  const { port, clock, env, databaseUrl, redisUrl, kills } = parts;
  const hear = (said: Report) => {
    if (said.is === "begun" || said.is === "stored" || said.is === "slept" || said.is === "answered") parts.hear(said);
  };
  const gone: Usage[] = [];
  let current = await serving(launch(contestant, hear));
  let spare = kills ? launch(contestant, hear) : undefined;
  const poster = createPoster(`http://127.0.0.1:${port}/api/snaptrade/webhook`, CONNECTIONS);

  async function serving(child: Child) {
    await child.next("ready");
    const up = child.next("serving");
    child.give({ do: "serve", port, clock, env, databaseUrl, redisUrl });
    await up;
    return { ...child, started: usageOf(child.pid) };
  }

  function noteUsage(): void {
    const used = usedBy(current);
    if (used !== null) gone.push(used);
  }

  return {
    post: poster.post,
    sweep: (accountIds) => current.give({ do: "sweep", accountIds: [...accountIds] }),
    kill() {
      noteUsage();
      current.kill();
    },
    async restart() {
      await current.exited;
      current = await serving(spare ?? launch(contestant, hear));
      spare = undefined;
    },
    async close() {
      poster.close();
      current.kill();
      spare?.kill();
      await Promise.all([current.exited, spare?.exited]);
    },
    async figures() {
      const counted = current.next("counted");
      current.give({ do: "count" });
      const { all, open } = await counted;
      const now = usedBy(current);
      const used = now === null ? gone : [...gone, now];
      return { jobs: all, open, usage: used.length === 0 ? null : summed(used) };
    },
  };
}

/** Without what its start took. */
function usedBy({ pid, started }: { pid: number; started: Usage | null }): Usage | null {
  const now = usageOf(pid);
  return now === null ? null : { ...now, cpuSeconds: now.cpuSeconds - (started?.cpuSeconds ?? 0) };
}

function summed(used: Usage[]): Usage {
  return {
    cpuSeconds: used.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    peakMemoryMb: Math.max(...used.map(({ peakMemoryMb }) => peakMemoryMb)),
  };
}

function launch(contestant: ContestantName, hear: (said: Report) => void) {
  const child = fork(MAIN, [contestant], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, NODE_ENV: "test" },
  });
  let output = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-5_000);
  });
  const exited = once(child, "exit").then(() => undefined);
  const said = new Map<string, Report>();
  const waiting = new Map<string, (said: Report) => void>();
  child.on("message", (message) => {
    const heard = report.parse(message);
    hear(heard);
    const waiter = waiting.get(heard.is);
    waiting.delete(heard.is);
    if (waiter === undefined) said.set(heard.is, heard);
    else waiter(heard);
  });
  return {
    pid: child.pid ?? 0,
    exited,
    give: (given: Order) => void child.send(given, () => undefined),
    kill: () => void child.kill("SIGKILL"),
    /** The next report of that kind, or the one that came already. */
    next<K extends Report["is"]>(is: K): Promise<Extract<Report, { is: K }>> {
      return new Promise((resolve, reject) => {
        const take = (heard: Report) => resolve(heard as Extract<Report, { is: K }>);
        const there = said.get(is);
        said.delete(is);
        if (there !== undefined) take(there);
        else waiting.set(is, take);
        void exited.then(() => reject(new Error(`The contestant ended while it was waited for (${is}):\n${output}`)));
      });
    },
  };
}
