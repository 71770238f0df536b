import { setTimeout as sleep } from "node:timers/promises";
import { type WorldClock, wallMs, worldNow } from "@/bench/world/clock";
import type { WorkType } from "@/lib/domain";

/** What a run of a kind usually makes. */
export const CALLS = { holdings: 3, transactions: 1 } as const satisfies Record<WorkType, number>;

type Limits = { rateLimit: number; rateWindowMs: number };

/**
 * What users of a queue without a limiter write: one process that takes its jobs no faster than their calls may follow one
 * another. It waits before a job is taken, so that nothing is held on the way.
 */
export function createPace(clock: WorldClock, { rateLimit, rateWindowMs }: Limits, share: number) {
  const callMs = rateWindowMs / (share * rateLimit);
  /** Of a timer that woke late so much is made up for. */
  const mostLateMs = CALLS.holdings * callMs;
  let freeMs = 0;
  let heldUntilMs = 0;
  let last = Promise.resolve();

  function spend(calls: number): void {
    freeMs = Math.max(freeMs, worldNow(clock) - mostLateMs) + calls * callMs;
  }

  async function free(): Promise<void> {
    const left = () => Math.max(freeMs, heldUntilMs) - worldNow(clock);
    for (let ms = left(); ms > 0; ms = left()) {
      await sleep(Math.ceil(wallMs(clock, ms)));
    }
    spend(1);
  }

  return {
    /** Resolves when one more call may be made, one asker after another. */
    turn(): Promise<void> {
      last = last.then(free);
      return last;
    },
    /** The job that was found makes so many calls beside that one; less than 0: calls that were not made. */
    spend,
    /** The provider wants to be left alone. */
    hold(ms: number): void {
      heldUntilMs = Math.max(heldUntilMs, worldNow(clock) + ms);
    },
  };
}
