import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { usageOf } from "@/bench/child/usage";

/** Processor seconds of a process and its children so far. */
export function cpuSecondsOf(pid: number): number {
  return treeOf(pid).reduce((sum, member) => sum + (usageOf(member)?.cpuSeconds ?? 0), 0);
}

/** Options for Node with which a process collects its garbage when it is told to. */
export const COLLECTS_ON_SIGNAL = [
  "--expose-gc",
  "--import",
  "data:text/javascript,process.on('SIGUSR2', () => globalThis.gc())",
];

/** Memory of a process that has nothing to do, in megabytes as the platform counts them (resident). */
export type IdleMemory = {
  /** As the load left it: with the garbage that V8 had no reason to collect yet. */
  leftMb: number;
  /** After a full collection: what the process holds. What grows here with the events is kept for good. */
  heldMb: number;
};

/** @param pid a process that was started with COLLECTS_ON_SIGNAL */
export async function idleMemory(pid: number, seconds: number): Promise<IdleMemory> {
  const leftMb = await leastResidentMb(pid, seconds);
  process.kill(pid, "SIGUSR2");
  await sleep(1_000);
  process.kill(pid, "SIGUSR2"); // what only finalizers held
  return { leftMb, heldMb: await leastResidentMb(pid, seconds) };
}

/** The least of what is read each second. */
async function leastResidentMb(pid: number, seconds: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < seconds; second += 1) {
    await sleep(1_000);
    least = Math.min(least, residentMb(pid));
  }
  return least;
}

function residentMb(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

/** Children stand with the thread that made them. */
function treeOf(pid: number): number[] {
  try {
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    );
    return [pid, ...children.flatMap(treeOf)];
  } catch {
    return [pid]; // ended meanwhile
  }
}
