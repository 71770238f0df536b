import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { usageOf } from "@/bench/child/usage";

/** Processor seconds of a process and its children so far. */
export function cpuSecondsOf(pid: number): number {
  return treeOf(pid).reduce((sum, member) => sum + (usageOf(member)?.cpuSeconds ?? 0), 0);
}

/**
 * Resident megabytes of the process when it is idle: the least of what is read each second. As a platform counts it, and
 * without forcing a collection, which no server does: V8 keeps what it has when nothing comes (measured), so this is the
 * level at which the load left it.
 */
export async function idleMemoryMb(pid: number, seconds: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < seconds; second += 1) {
    await sleep(1_000);
    least = Math.min(least, residentMb(pid));
  }
  return least;
}

export function residentMb(pid: number): number {
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
