/** A message's place in a queue, from its first delivery until it and its callbacks are through. */
export class QueueSlot {
  #holders = 1;

  constructor(private readonly free: () => void) {}

  /** One more message (a callback) has to be through before the next one may go. */
  retain(): void {
    this.#holders++;
  }

  release(): void {
    this.#holders--;
    if (this.#holders === 0) this.free();
  }
}

export type QueueTicket = { queueName: string; start: (slot: QueueSlot) => void };
export type QueueInfo = {
  name: string;
  createdAt: number;
  updatedAt: number;
  parallelism: number;
  paused: boolean;
  lag: number;
};
type Queue = Omit<QueueInfo, "lag"> & { waiting: Set<QueueTicket>; active: number };

/**
 * FIFO queues: the next message waits for the retries and the callbacks of the one before (QStash docs, features/queues). A queue
 * appears with its first message, with parallelism 1.
 */
export class Queues {
  readonly #queues = new Map<string, Queue>();

  constructor(private readonly now: () => number) {}

  upsert(name: string, change: { parallelism?: number; paused?: boolean }): void {
    const queue = this.#queue(name);
    Object.assign(queue, change, { updatedAt: this.now() });
    this.#startNext(queue);
  }

  /** Joins its queue; its `start` may be called before this returns. */
  enter(ticket: QueueTicket): void {
    const queue = this.#queue(ticket.queueName);
    queue.waiting.add(ticket);
    this.#startNext(queue);
  }

  leave(ticket: QueueTicket): void {
    this.#queues.get(ticket.queueName)?.waiting.delete(ticket);
  }

  info(name: string): QueueInfo | undefined {
    const queue = this.#queues.get(name);
    if (queue === undefined) return undefined;
    const { waiting, active, ...shown } = queue;
    return { ...shown, lag: waiting.size + active };
  }

  list(): QueueInfo[] {
    return [...this.#queues.keys()].flatMap((name) => this.info(name) ?? []);
  }

  #queue(name: string): Queue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const now = this.now();
    const created = {
      name,
      createdAt: now,
      updatedAt: now,
      parallelism: 1,
      paused: false,
      waiting: new Set<QueueTicket>(),
      active: 0,
    };
    this.#queues.set(name, created);
    return created;
  }

  #startNext(queue: Queue): void {
    for (const ticket of queue.waiting) {
      if (queue.paused || queue.active >= queue.parallelism) return;
      queue.waiting.delete(ticket);
      queue.active++;
      ticket.start(
        new QueueSlot(() => {
          queue.active--;
          this.#startNext(queue);
        }),
      );
    }
  }
}
