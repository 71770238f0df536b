import type { FlowLimits } from "@/sandbox/qstash/message";

/** One place in a wait list. `start` is called once, when a slot is given. */
export type Ticket = { key: string; order: number; start: () => void };

/** The documented fields (QStash OpenAPI, FlowControlKey). Periods and unix times in seconds. */
export type FlowKeyInfo = {
  flowControlKey: string;
  waitListSize: number;
  parallelismMax?: number;
  parallelismCount: number;
  rateMax?: number;
  rateCount: number;
  ratePeriod: number;
  ratePeriodStart: number;
  isPaused: boolean;
  isPinnedParallelism: boolean;
  isPinnedRate: boolean;
};

export type PinnedLimits = { parallelism: number | undefined; rate: number | undefined; periodMs: number | undefined };

/** The limits, counters and wait list of one flow-control key. Rate is counted in fixed periods that begin with a dispatch. */
export class FlowKey {
  /** First in, first out: a Set keeps the order of insertion and lets a cancelled ticket leave from the middle. */
  readonly waiting = new Set<Ticket>();
  paused = false;
  #limits: FlowLimits = { parallelism: undefined, rate: undefined, periodMs: 1_000 };
  #active = 0;
  #rateCount = 0;
  #periodStart = 0;
  #pinnedParallelism = false;
  #pinnedRate = false;

  constructor(readonly name: string) {}

  /** The last message's limits hold, except what is pinned (QStash docs, flow control, "Pin and unpin"). */
  configure(limits: FlowLimits): void {
    const rateFrom = this.#pinnedRate ? this.#limits : limits;
    this.#limits = {
      parallelism: this.#pinnedParallelism ? this.#limits.parallelism : limits.parallelism,
      rate: rateFrom.rate,
      periodMs: rateFrom.periodMs,
    };
  }

  /** Pinning resets the rate count and the period. */
  pin({ parallelism, rate, periodMs }: PinnedLimits, now: number): void {
    this.#limits = {
      parallelism: parallelism ?? this.#limits.parallelism,
      rate: rate ?? this.#limits.rate,
      periodMs: periodMs ?? this.#limits.periodMs,
    };
    this.#pinnedParallelism ||= parallelism !== undefined;
    this.#pinnedRate ||= rate !== undefined;
    this.resetRate(now);
  }

  /** The pinned values stay until a message brings others. */
  unpin({ parallelism, rate }: { parallelism: boolean; rate: boolean }): void {
    if (parallelism) this.#pinnedParallelism = false;
    if (rate) this.#pinnedRate = false;
  }

  resetRate(now: number): void {
    this.#rateCount = 0;
    this.#periodStart = now;
  }

  get head(): Ticket | undefined {
    return this.paused ? undefined : this.waiting.values().next().value;
  }

  /** Emulated time at which the rate allows the next dispatch; undefined while no parallelism slot is free. */
  nextDispatchAt(now: number): number | undefined {
    const { parallelism, rate, periodMs } = this.#limits;
    if (parallelism !== undefined && this.#active >= parallelism) return undefined;
    if (rate === undefined || this.#rateCount < rate) return now;
    return Math.max(now, this.#periodStart + periodMs);
  }

  /** Takes a slot for the head of the wait list. */
  dispatch(ticket: Ticket, now: number): void {
    if (now >= this.#periodStart + this.#limits.periodMs) this.resetRate(now);
    this.waiting.delete(ticket);
    this.#active++;
    this.#rateCount++;
  }

  /** The call was answered, failed or timed out: the slot is free, whatever follows. */
  release(): void {
    this.#active--;
  }

  info(now: number): FlowKeyInfo {
    const { parallelism, rate, periodMs } = this.#limits;
    return {
      flowControlKey: this.name,
      waitListSize: this.waiting.size,
      ...(parallelism === undefined ? {} : { parallelismMax: parallelism }),
      parallelismCount: this.#active,
      ...(rate === undefined ? {} : { rateMax: rate }),
      rateCount: now >= this.#periodStart + periodMs ? 0 : this.#rateCount,
      ratePeriod: periodMs / 1_000,
      ratePeriodStart: Math.floor(this.#periodStart / 1_000),
      isPaused: this.paused,
      isPinnedParallelism: this.#pinnedParallelism,
      isPinnedRate: this.#pinnedRate,
    };
  }
}
