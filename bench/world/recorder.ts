import type { Told } from "@/bench/child/protocol";
import type { Capacity } from "@/bench/world/allowance";
import type { SyncKey } from "@/lib/domain";

/**
 * An upstream change that an event tells of, and when that was answered (Infinity: never); or a key that a sweep found
 * stale: there a run is wanted, but nobody waits for it. Times are the row's.
 */
export type Change = SyncKey & { atMs: number; answeredMs: number; bySweep?: true };
export type RunRecord = SyncKey & { beganMs: number; storedMs: number | null };

/** What happened in a row, as it is told. */
export function createRecorder() {
  const changes: Change[] = [];
  const runs = new Map<string, RunRecord>();
  const capacities: Capacity[] = [];
  const seconds = { slept: 0, inFunctions: 0 };
  let faultMs: number | null = null;
  let markedMs: number | null = null;
  return {
    changes,
    runs,
    seconds,
    capacities,
    /** What the provider lets through from a moment on. */
    capacity: (from: Capacity) => void capacities.push(from),
    /** What was told so far was a warm-up. */
    clear() {
      changes.splice(0);
      runs.clear();
      Object.assign(seconds, { slept: 0, inFunctions: 0 });
    },
    faultMs: () => faultMs,
    markedMs: () => markedMs,
    /** The returned function notes the answer. */
    changed(key: SyncKey, atMs: number): (answeredMs: number) => void {
      const change = { ...key, atMs, answeredMs: Number.POSITIVE_INFINITY };
      changes.push(change);
      return (answeredMs) => {
        change.answeredMs = answeredMs;
      };
    },
    sweepBegan(accountIds: readonly string[], atMs: number) {
      for (const accountId of accountIds) {
        changes.push({ workType: "holdings", accountId, atMs, answeredMs: atMs, bySweep: true });
      }
    },
    /** A process was killed, Redis flushed, or a stall of QStash ended: what must recover. */
    fault(atMs: number) {
      faultMs = atMs;
    },
    /** The provider's limit fell, or users took much more of it: what must be noticed. */
    mark(atMs: number) {
      markedMs = atMs;
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
