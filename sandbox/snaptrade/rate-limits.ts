import { RollingWindow } from "@/sandbox/snaptrade/rolling-window";

export type LimitSettings = {
  /** Calls a window for the client id. */
  perMinute: number;
  /** Calls a window for each account; null: that limit is not in force (it is for Personal users only). */
  accountPerMinute: number | null;
  /** "Some configurations omit the headers while still enforcing" (SnapTrade docs, rate limiting). */
  rateLimitHeaders: boolean;
  /** Only later docs know `Retry-After`. */
  retryAfterHeader: boolean;
};

export type Refusal = { seconds: number };

/**
 * The customer limit and the account limit, each over its own rolling window. What the provider counts is every call
 * that is answered other than 429: a refused call does not count (the docs do not say; this is the plain reading, and a
 * client that keeps hammering is visible by the call log and `count429`).
 */
export class RateLimits {
  readonly #windowMs: number;
  readonly #atStart: LimitSettings;
  #settings: LimitSettings;
  #client: RollingWindow;
  #accounts = new Map<string, RollingWindow>();

  constructor(settings: LimitSettings, windowMs: number) {
    this.#windowMs = windowMs;
    this.#atStart = settings;
    this.#settings = settings;
    this.#client = new RollingWindow(windowMs);
  }

  get settings(): LimitSettings {
    return this.#settings;
  }

  change(settings: Partial<LimitSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
  }

  /** Empty windows and the settings of the start. */
  reset(): void {
    this.#settings = this.#atStart;
    this.#client = new RollingWindow(this.#windowMs);
    this.#accounts.clear();
  }

  get maxCallsInWindow(): number {
    return this.#client.most;
  }

  /** Whether a call now is over a limit. Charges nothing. */
  refusal(now: number, accountId: string | null): Refusal | null {
    const { perMinute, accountPerMinute } = this.#settings;
    if (this.#client.count(now) >= perMinute) return { seconds: secondsUntilFree(this.#client, now, perMinute) };
    if (accountId === null || accountPerMinute === null) return null;
    const window = this.#account(accountId);
    if (window.count(now) < accountPerMinute) return null;
    return { seconds: secondsUntilFree(window, now, accountPerMinute) };
  }

  charge(now: number, accountId: string | null): void {
    this.#client.add(now);
    if (accountId !== null) this.#account(accountId).add(now);
  }

  /**
   * The headers of an answer, after its charge. `Reset` is seconds, rounded up, until the oldest call leaves the window
   * (at remaining 0: until one call is free); it is not an epoch.
   */
  headers(now: number, accountId: string | null, refusal: Refusal | null): Record<string, string> {
    const { perMinute, accountPerMinute, rateLimitHeaders, retryAfterHeader } = this.#settings;
    const headers: Record<string, string> = {};
    if (rateLimitHeaders) {
      Object.assign(headers, windowHeaders("X-RateLimit-", this.#client, now, perMinute));
      if (accountId !== null && accountPerMinute !== null) {
        Object.assign(headers, windowHeaders("X-RateLimit-Account-", this.#account(accountId), now, accountPerMinute));
      }
    }
    if (retryAfterHeader && refusal !== null) headers["Retry-After"] = String(refusal.seconds);
    return headers;
  }

  #account(accountId: string): RollingWindow {
    const known = this.#accounts.get(accountId);
    if (known !== undefined) return known;
    const window = new RollingWindow(this.#windowMs);
    this.#accounts.set(accountId, window);
    return window;
  }
}

function windowHeaders(prefix: string, window: RollingWindow, now: number, limit: number): Record<string, string> {
  return {
    [`${prefix}Limit`]: String(limit),
    [`${prefix}Remaining`]: String(Math.max(0, limit - window.count(now))),
    [`${prefix}Reset`]: String(secondsUntilFree(window, now, limit)),
  };
}

function secondsUntilFree(window: RollingWindow, now: number, limit: number): number {
  return Math.ceil(window.msUntilNextFree(now, limit) / 1000);
}
