import type { Clock } from "@/lib/domain";

/** QStash docs, features/deduplication: 10 minutes. */
export const DEDUPLICATION_WINDOW_MS = 600_000;

/** The ids that were published lately. An id stays for the whole window, also when its message failed or was cancelled. */
export class Deduplication {
  /** In the order of insertion, which is the order of expiry, because all have the same window. */
  readonly #seen = new Map<string, { messageId: string; until: number }>();

  constructor(
    private readonly now: Clock,
    private readonly windowMs: number,
  ) {}

  /** The message that was published under this id within the window. */
  find(id: string): string | undefined {
    const entry = this.#seen.get(id);
    return entry !== undefined && entry.until > this.now() ? entry.messageId : undefined;
  }

  remember(id: string, messageId: string): void {
    this.#forgetExpired();
    this.#seen.delete(id);
    this.#seen.set(id, { messageId, until: this.now() + this.windowMs });
  }

  #forgetExpired(): void {
    const now = this.now();
    for (const [id, entry] of this.#seen) {
      if (entry.until > now) return;
      this.#seen.delete(id);
    }
  }
}
