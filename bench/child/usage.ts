import { readFileSync } from "node:fs";
import type { Usage } from "@/bench/contestant";

/** Linux counts in hundredths of a second (proc(5), sysconf(_SC_CLK_TCK)). */
const TICKS_A_SECOND = 100;

/** What a process has used so far, read from outside; null without /proc or without that process. */
export function usageOf(pid: number): Usage | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    // Fields 14 and 15 of the whole line, user and system; the first two are cut off.
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { cpuSeconds: ticks / TICKS_A_SECOND, peakMemoryMb: Number(peak) / 1024 };
  } catch {
    return null;
  }
}

/** Processor time of the whole machine so far; null without /proc. */
export function machineTime(): { busy: number; all: number } | null {
  try {
    const [first = ""] = readFileSync("/proc/stat", "utf8").split("\n");
    const ticks = first.trim().split(/\s+/).slice(1, 9).map(Number);
    const all = ticks.reduce((sum, n) => sum + n, 0);
    // idle and iowait
    return { busy: all - (ticks[3] ?? 0) - (ticks[4] ?? 0), all };
  } catch {
    return null;
  }
}
