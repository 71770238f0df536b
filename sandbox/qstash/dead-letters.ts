import type { AttemptOutcome } from "@/sandbox/qstash/attempt";
import type { Message } from "@/sandbox/qstash/message";

export type DeadLetter = { dlqId: string; message: Message; outcome: AttemptOutcome };

/** The messages that failed for good, oldest first (QStash docs, features/dlq). Nothing expires here. */
export class DeadLetters {
  readonly #letters = new Map<string, DeadLetter>();
  #count = 0;

  add(message: Message, outcome: AttemptOutcome, now: number): DeadLetter {
    const dlqId = `${Math.floor(now)}-${this.#count++}`;
    const letter = { dlqId, message, outcome };
    this.#letters.set(dlqId, letter);
    return letter;
  }

  get size(): number {
    return this.#letters.size;
  }

  get(dlqId: string): DeadLetter | undefined {
    return this.#letters.get(dlqId);
  }

  all(): DeadLetter[] {
    return [...this.#letters.values()];
  }

  remove(dlqId: string): boolean {
    return this.#letters.delete(dlqId);
  }
}
