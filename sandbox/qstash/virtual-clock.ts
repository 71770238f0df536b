import { type HeapEntry, TimerHeap } from "@/sandbox/qstash/timer-heap";

export type Timer = { cancel(): void };

/** Longest wait that is handed to the host at once; setTimeout turns anything above 2^31 - 1 ms into 1 ms. */
const LONGEST_HOST_WAIT_MS = 3_600_000;

/**
 * Emulated time: starts at the wall clock, runs `scale` times as fast (0: stands still), and can be moved on by hand. Every delay,
 * backoff, window and time limit of the emulator hangs on it, so a test steps through hours. All timers share one heap and one host
 * timer; nothing polls.
 */
export class VirtualClock {
  readonly #timers = new TimerHeap<HeapEntry & { run: () => void }>();
  #scale: number;
  #anchor = { wall: Date.now(), emulated: Date.now() };
  /** While timers are stepped through by `advance`, time stands at the timer that runs. */
  #steppingAt: number | undefined;
  #order = 0;
  #hostTimer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(scale: number) {
    this.#scale = checkedScale(scale);
  }

  get scale(): number {
    return this.#scale;
  }

  /** Emulated time, milliseconds since the epoch. */
  now(): number {
    return this.#steppingAt ?? this.#anchor.emulated + (Date.now() - this.#anchor.wall) * this.#scale;
  }

  /** The emulated time of a moment that the outside world named by its own clock: as far from now as it is for them. */
  fromWallTime(unixMs: number): number {
    return this.now() + (unixMs - Date.now());
  }

  /** Runs `run` once at emulated time `at`; never in this call, even if that time has come. */
  setTimer(at: number, run: () => void): Timer {
    const entry = { at, order: this.#order++, position: -1, run };
    this.#timers.add(entry);
    if (this.#timers.first === entry) this.#arm();
    return {
      cancel: () => {
        this.#timers.remove(entry);
      },
    };
  }

  /** 60: a minute passes in a real second. Timers keep their emulated times. */
  setScale(scale: number): void {
    this.#anchorAt(this.now());
    this.#scale = checkedScale(scale);
    this.#arm();
  }

  /** Moves time on by `ms`, running every timer on the way in order and at its own time, also those that are set on the way. */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`advanceMs must be 0 or more, not ${ms}: emulated time never runs backwards`);
    const target = this.now() + ms;
    while (!this.#stopped) {
      const next = this.#timers.first;
      if (next === undefined || next.at > target) break;
      this.#steppingAt = Math.max(next.at, this.#steppingAt ?? this.now());
      this.#timers.remove(next);
      next.run();
    }
    this.#steppingAt = undefined;
    this.#anchorAt(target);
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#hostTimer);
  }

  #anchorAt(emulated: number): void {
    this.#anchor = { wall: Date.now(), emulated };
  }

  #arm(): void {
    clearTimeout(this.#hostTimer);
    const next = this.#timers.first;
    if (this.#stopped || this.#steppingAt !== undefined || next === undefined) return;
    const left = Math.max(0, next.at - this.now());
    if (left > 0 && this.#scale === 0) return;
    const wait = left === 0 ? 0 : Math.ceil(left / this.#scale);
    this.#hostTimer = setTimeout(() => this.#runDue(), Math.min(wait, LONGEST_HOST_WAIT_MS));
  }

  #runDue(): void {
    const until = this.now();
    while (!this.#stopped) {
      const next = this.#timers.first;
      if (next === undefined || next.at > until) break;
      this.#timers.remove(next);
      next.run();
    }
    this.#arm();
  }
}

function checkedScale(scale: number): number {
  if (!Number.isFinite(scale) || scale < 0) throw new RangeError(`timeScale must be 0 or more, not ${scale}`);
  return scale;
}
