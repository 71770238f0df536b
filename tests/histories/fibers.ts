/**
 * Work that stops before each call of a port and goes on when it is told to: what the calls meet, and in which order
 * those of several pieces of work fall, is the history's to decide.
 */
export type TurnEnd =
  /** The call is made and answered. */
  | "answered"
  /** The call is never made, and its caller is told so. */
  | "refused"
  /** The call is made, its answer never comes. */
  | "lost";

type Turn = {
  port: string;
  call: () => Promise<unknown>;
  /** What the caller sees where no answer comes: a value of the port, or an error. */
  missing: () => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
};

export class Fiber {
  #turn: Turn | undefined;
  #wake = () => {};
  #stopped: Promise<void> = Promise.resolve();
  ended = false;
  crashed = false;

  /** What the work is at; it may change on the way. */
  constructor(
    public name: string,
    readonly onCrash: () => void = () => {},
  ) {}

  /** The port whose call comes next; undefined: the work has ended or crashed. */
  get next(): string | undefined {
    return this.#turn?.port;
  }

  /** Begins the work, up to its first call. */
  async begin(work: () => Promise<void>): Promise<void> {
    this.#watch();
    void work().finally(() => {
      this.ended = true;
      this.#wake();
    });
    await this.#stopped;
  }

  /** Stands between the work and a port. */
  turn<T>(port: string, call: () => Promise<T>, missing: () => T): Promise<T> {
    if (this.crashed) return new Promise(() => {});
    return new Promise<T>((resolve, reject) => {
      this.#turn = { port, call, missing, resolve: resolve as (value: unknown) => void, reject };
      this.#wake();
    });
  }

  /** Makes the call that comes next and goes on to the one after it. */
  async go(end: TurnEnd = "answered"): Promise<void> {
    const turn = this.#turn;
    if (turn === undefined) return;
    this.#turn = undefined;
    this.#watch();
    try {
      const answer = end === "refused" ? undefined : await turn.call();
      turn.resolve(end === "answered" ? answer : turn.missing());
    } catch (error) {
      turn.reject(error);
    }
    await this.#stopped;
  }

  /** The process dies before the call that comes next, or after it was made. */
  async crash(after: boolean): Promise<void> {
    const turn = this.#turn;
    this.#turn = undefined;
    this.crashed = true;
    if (after) await turn?.call().catch(() => {});
    this.onCrash();
  }

  #watch(): void {
    this.#stopped = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
