import { setTimeout as sleep } from "node:timers/promises";
import type { TiedProcess } from "@/sandbox/server-process";

const LIMIT_MS = 4_000;

/**
 * Asks a process to end, and what is left of its group after four seconds is killed. First asked, because Next.js starts
 * the type check of a build outside its group, and ends it only by itself.
 */
export async function endGroup(tied: TiedProcess): Promise<void> {
  if (hasEnded(tied)) return;
  signalGroup(tied, "SIGTERM");
  await Promise.race([tied.exited, sleep(LIMIT_MS, undefined, { ref: false })]);
  killGroup(tied);
  await tied.exited;
}

/** As a crash would. Of the whole group: `next dev` keeps its server in a process of its own. */
export function killGroup(tied: TiedProcess): void {
  signalGroup(tied, "SIGKILL");
}

export function hasEnded({ child }: TiedProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function signalGroup({ child }: TiedProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // Nobody of the group is left.
  }
}
