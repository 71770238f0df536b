import type { Message } from "@/lib/jobs/publisher";

export type Waiting = { message: Message; notBefore: number; retried: number };
/** How a publish goes wrong while it is answered as good: it vanishes, or it comes twice. */
export type QueueFault = "swallowed" | "doubled";

const RETRIES = 3;

/** QStash in memory: it delivers when it is told to, late, twice or never, but no sooner than it was asked to. */
export class MessageQueue {
  readonly waiting: Waiting[] = [];
  readonly #seen = new Set<string>();
  readonly #faults: QueueFault[] = [];

  constructor(readonly now: () => number) {}

  failNext(fault: QueueFault): void {
    this.#faults.push(fault);
  }
  mend(): void {
    this.#faults.splice(0);
  }

  publish(messages: Message[]): void {
    for (const message of messages) {
      if (this.#seen.has(message.dedupe)) continue;
      this.#seen.add(message.dedupe);
      const fault = this.#faults.shift();
      const entry = { message, notBefore: this.now() + Math.ceil(message.delayMs / 1000) * 1000, retried: 0 };
      if (fault !== "swallowed") this.waiting.push(entry);
      if (fault === "doubled") this.waiting.push({ ...entry });
    }
  }

  due(): Waiting[] {
    return this.waiting.filter(({ notBefore }) => notBefore <= this.now());
  }
  take(entry: Waiting): void {
    this.waiting.splice(this.waiting.indexOf(entry), 1);
  }
  /** An answer that asks for it again, or none at all. False: that was its last retry. */
  again(entry: Waiting): boolean {
    if (entry.retried >= RETRIES) return false;
    const retried = entry.retried + 1;
    this.waiting.push({ ...entry, retried, notBefore: this.now() + 10_000 * 3 ** entry.retried });
    return true;
  }
}
