/**
 * Counts calls in a rolling window (SnapTrade docs, rate limiting: the trailing 60 s). A call at time t is inside until
 * just before t + window, and outside at t + window. Times must not decrease. Constant time a call.
 */
export class RollingWindow {
  readonly #windowMs: number;
  #times: number[] = [];
  #oldest = 0;
  #most = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  add(now: number): void {
    this.#forget(now);
    this.#times.push(now);
    this.#most = Math.max(this.#most, this.#times.length - this.#oldest);
  }

  count(now: number): number {
    this.#forget(now);
    return this.#times.length - this.#oldest;
  }

  /** The most calls that any window held. */
  get most(): number {
    return this.#most;
  }

  /**
   * Milliseconds until the next call leaves the window; when `limit` or more are inside, until enough have left for one
   * call to be free. 0 when the window is empty.
   */
  msUntilNextFree(now: number, limit: number): number {
    const inside = this.count(now);
    const leaving = this.#times[this.#oldest + Math.max(0, Math.min(inside - limit, inside - 1))];
    return leaving === undefined ? 0 : leaving + this.#windowMs - now;
  }

  #forget(now: number): void {
    const edge = now - this.#windowMs;
    while ((this.#times[this.#oldest] ?? Number.POSITIVE_INFINITY) <= edge) this.#oldest += 1;
    if (this.#oldest > 1024 && this.#oldest * 2 > this.#times.length) {
      this.#times = this.#times.slice(this.#oldest);
      this.#oldest = 0;
    }
  }
}
