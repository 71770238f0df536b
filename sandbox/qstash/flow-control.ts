import { FlowKey, type FlowKeyInfo, type PinnedLimits, type Ticket } from "@/sandbox/qstash/flow-key";
import type { FlowLimits } from "@/sandbox/qstash/message";
import type { Timer, VirtualClock } from "@/sandbox/qstash/virtual-clock";

/** Messages without a key wait on this one; only the global parallelism limits it. */
const NO_KEY = "$";

/**
 * Lets deliveries start within the limits of their flow-control key and of the plan. What does not fit waits, first in, first out,
 * and is never refused (QStash docs, features/flowcontrol). A slot is held from the start of a call until its answer, so neither a
 * delayed message nor one that waits for its retry holds one.
 */
export class FlowControl {
  readonly #keys = new Map<string, FlowKey>();
  /** The keys with somebody waiting: all that a freed slot has to look at. */
  readonly #waitingKeys = new Set<FlowKey>();
  #active = 0;
  #order = 0;
  #held = false;
  #rateTimer: Timer | undefined;

  constructor(
    private readonly clock: VirtualClock,
    private readonly globalParallelism: number,
  ) {}

  /** Each message brings the limits of its key: the last writer wins. */
  configure(key: string, limits: FlowLimits): void {
    this.#key(key).configure(limits);
    this.#dispatchAll();
  }

  /** `start` is called once, when the ticket has its slot; `release` must follow it. */
  ticket(key: string | undefined, start: () => void): Ticket {
    return { key: key ?? NO_KEY, order: this.#order++, start };
  }

  /** Joins the wait list of its key; its `start` may be called before this returns. */
  enter(ticket: Ticket): void {
    const flow = this.#key(ticket.key);
    flow.waiting.add(ticket);
    this.#waitingKeys.add(flow);
    this.#dispatchAll();
  }

  leave(ticket: Ticket): void {
    this.#key(ticket.key).waiting.delete(ticket);
  }

  release(ticket: Ticket): void {
    this.#active--;
    this.#key(ticket.key).release();
    this.#dispatchAll();
  }

  /** While held nothing starts at all: an outage of the service. */
  hold(held: boolean): void {
    this.#held = held;
    this.#dispatchAll();
  }

  setPaused(key: string, paused: boolean): void {
    this.#key(key).paused = paused;
    this.#dispatchAll();
  }

  pin(key: string, limits: PinnedLimits): void {
    this.#key(key).pin(limits, this.clock.now());
    this.#dispatchAll();
  }

  unpin(key: string, parts: { parallelism: boolean; rate: boolean }): void {
    this.#key(key).unpin(parts);
  }

  resetRate(key: string): void {
    this.#key(key).resetRate(this.clock.now());
    this.#dispatchAll();
  }

  info(key: string): FlowKeyInfo | undefined {
    return this.#keys.get(key)?.info(this.clock.now());
  }

  list(): FlowKeyInfo[] {
    return [...this.#keys.values()].map((flow) => flow.info(this.clock.now()));
  }

  global(): { parallelismMax: number; parallelismCount: number } {
    return { parallelismMax: this.globalParallelism, parallelismCount: this.#active };
  }

  stop(): void {
    this.#held = true;
    this.#rateTimer?.cancel();
  }

  #key(name: string): FlowKey {
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const created = new FlowKey(name);
    this.#keys.set(name, created);
    return created;
  }

  #dispatchAll(): void {
    while (!this.#held && this.#active < this.globalParallelism) {
      const next = this.#firstAllowed();
      if (next === undefined) return;
      next.flow.dispatch(next.ticket, this.clock.now());
      this.#active++;
      next.ticket.start();
    }
  }

  /** The longest waiting ticket whose key has a slot; if only rates are in the way, a timer for the first that ends. */
  #firstAllowed(): { flow: FlowKey; ticket: Ticket } | undefined {
    const now = this.clock.now();
    let first: { flow: FlowKey; ticket: Ticket } | undefined;
    let wakeAt = Number.POSITIVE_INFINITY;
    for (const flow of this.#waitingKeys) {
      if (flow.waiting.size === 0) this.#waitingKeys.delete(flow);
      const ticket = flow.head;
      const at = ticket === undefined ? undefined : flow.nextDispatchAt(now);
      if (ticket === undefined || at === undefined) continue;
      if (at > now) wakeAt = Math.min(wakeAt, at);
      else if (first === undefined || ticket.order < first.ticket.order) first = { flow, ticket };
    }
    if (first === undefined) this.#wakeAt(wakeAt);
    return first;
  }

  #wakeAt(at: number): void {
    this.#rateTimer?.cancel();
    this.#rateTimer = undefined;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#rateTimer = this.clock.setTimer(at, () => this.#dispatchAll());
  }
}
