import type { Told } from "@/bench/child/protocol";
import type { SyncKey } from "@/lib/domain";

/** An upstream change that an event tells of, and when that was answered (Infinity: never). Times are the row's. */
export type Change = SyncKey & { atMs: number; answeredMs: number };
export type RunRecord = SyncKey & { beganMs: number; storedMs: number | null };

/** What happened in a row, as it is told. */
export function createRecorder() {
  const changes: Change[] = [];
  const runs = new Map<string, RunRecord>();
  const seconds = { slept: 0, inFunctions: 0 };
  let faultMs: number | null = null;
  return {
    changes,
    runs,
    seconds,
    faultMs: () => faultMs,
    /** The returned function notes the answer. */
    changed(key: SyncKey, atMs: number): (answeredMs: number) => void {
      const change = { ...key, atMs, answeredMs: Number.POSITIVE_INFINITY };
      changes.push(change);
      return (answeredMs) => {
        change.answeredMs = answeredMs;
      };
    },
    /** A process was killed, or Redis flushed. */
    fault(atMs: number) {
      faultMs = atMs;
    },
    hear(told: Told): void {
      switch (told.is) {
        case "begun": {
          const { run, workType, accountId, atMs } = told;
          runs.set(run, { workType, accountId, beganMs: atMs, storedMs: null });
          break;
        }
        case "stored": {
          const run = runs.get(told.run);
          if (run !== undefined) run.storedMs = told.atMs;
          break;
        }
        case "slept":
          seconds.slept += told.ms / 1000;
          break;
        case "answered":
          seconds.inFunctions += told.ms / 1000;
          break;
      }
    },
  };
}
