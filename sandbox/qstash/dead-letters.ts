import type { AttemptOutcome } from "@/sandbox/qstash/attempt";
import type { HeaderRecord, Message } from "@/sandbox/qstash/message";
import { type ParsedPublish, parsePublish } from "@/sandbox/qstash/publish-spec";

export type DeadLetter = { dlqId: string; message: Message; outcome: AttemptOutcome };

/** Headers that concern one publish, not the message: a DLQ retry goes out at once and is no duplicate of its first life. */
const ONCE_ONLY = new Set([
  "upstash-deduplication-id",
  "upstash-content-based-deduplication",
  "upstash-delay",
  "upstash-not-before",
]);

/** What a retry from the DLQ publishes: the message as it was, with `overrides` on its configuration. */
export function parseRetry({ message }: DeadLetter, overrides: HeaderRecord): ParsedPublish {
  const { destination, body, queueName, configuration } = message;
  const kept = Object.entries(configuration).filter(([name]) => !ONCE_ONLY.has(name));
  return parsePublish({ destination, headers: { ...Object.fromEntries(kept), ...overrides }, body, queueName });
}

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
