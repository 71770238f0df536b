import { randomUUID } from "node:crypto";
import type { AttemptOutcome } from "@/sandbox/qstash/attempt";
import { callbackMessage } from "@/sandbox/qstash/callbacks";
import { DeadLetters, parseRetry } from "@/sandbox/qstash/dead-letters";
import { Deduplication } from "@/sandbox/qstash/deduplication";
import { Deliveries } from "@/sandbox/qstash/deliveries";
import type { Deliverer } from "@/sandbox/qstash/delivery";
import { EventLog, type MessageEvent, type MessageState } from "@/sandbox/qstash/event-log";
import type { FaultBoard } from "@/sandbox/qstash/faults";
import { FlowControl } from "@/sandbox/qstash/flow-control";
import type { Message, PublishSpec } from "@/sandbox/qstash/message";
import type { Refused } from "@/sandbox/qstash/publish-spec";
import { type QueueSlot, Queues, type QueueTicket } from "@/sandbox/qstash/queues";
import { decideRetry } from "@/sandbox/qstash/retry-decision";
import type { VirtualClock } from "@/sandbox/qstash/virtual-clock";

export type BrokerOptions = {
  clock: VirtualClock;
  deliverer: Deliverer;
  faults: FaultBoard;
  globalParallelism: number;
  dedupWindowMs: number;
};

export type Published = { messageId: string; deduplicated: boolean };

type Stored = {
  message: Message;
  phase: "delayed" | "waiting" | "inFlight";
  /** Takes the message out of where it waits. */
  withdraw: () => void;
  slot: QueueSlot | undefined;
  cancelRequested: boolean;
};

/** Carries messages from publish to delivered, failed or cancelled. All of it lives in memory. */
export class Broker {
  readonly flow: FlowControl;
  readonly queues: Queues;
  readonly deadLetters = new DeadLetters();
  readonly deliveries = new Deliveries();
  readonly log = new EventLog();
  /** New messages from publishers, and those that were answered as duplicates; callbacks are counted in neither. */
  published = 0;
  deduplicated = 0;
  readonly #dedup: Deduplication;
  readonly #stored = new Map<string, Stored>();

  constructor(private readonly options: BrokerOptions) {
    const now = () => options.clock.now();
    this.flow = new FlowControl(options.clock, options.globalParallelism);
    this.queues = new Queues(now);
    this.#dedup = new Deduplication(now, options.dedupWindowMs);
  }

  /** `lose`: everything happens as usual, only the message is not kept. */
  publish(spec: PublishSpec, callerIp: string, { lose = false } = {}): Published {
    const known = spec.deduplicationId === undefined ? undefined : this.#dedup.find(spec.deduplicationId);
    if (known !== undefined) {
      this.deduplicated++;
      return { messageId: known, deduplicated: true };
    }
    this.published++;
    const message = this.#create(spec, callerIp);
    if (spec.deduplicationId !== undefined) this.#dedup.remember(spec.deduplicationId, message.messageId);
    if (!lose) this.#store(message, undefined);
    return { messageId: message.messageId, deduplicated: false };
  }

  /** The messages that are neither delivered, failed nor cancelled. */
  messages(): Message[] {
    return [...this.#stored.values()].map(({ message }) => message);
  }

  message(messageId: string): Message | undefined {
    return this.#stored.get(messageId)?.message;
  }

  /** `pending`: until a delay or a retry is due. `waiting`: in a queue or for flow control. `inFlight`: calls under way. */
  counts(): { pending: number; waiting: number; inFlight: number } {
    const counts = { pending: 0, waiting: 0, inFlight: this.flow.global().parallelismCount };
    for (const { phase } of this.#stored.values()) {
      if (phase === "delayed") counts.pending++;
      else if (phase === "waiting") counts.waiting++;
    }
    return counts;
  }

  /** A call that is under way is not interrupted; its message is then not tried again. False: no such message. */
  cancel(messageId: string): boolean {
    const stored = this.#stored.get(messageId);
    if (stored === undefined) return false;
    this.#note(stored.message, "CANCEL_REQUESTED");
    stored.cancelRequested = true;
    if (stored.phase !== "inFlight") {
      stored.withdraw();
      this.#finish(stored, "CANCELLED");
    }
    return true;
  }

  /** Publishes a dead letter as a new message, with `overrides` on its configuration, and removes it. */
  retryDeadLetter(dlqId: string, overrides: Record<string, string>): Published | Refused | undefined {
    const letter = this.deadLetters.get(dlqId);
    if (letter === undefined) return undefined;
    const parsed = parseRetry(letter, overrides);
    if (parsed.kind === "refused") return parsed;
    this.deadLetters.remove(dlqId);
    return this.publish(parsed.spec, letter.message.callerIp);
  }

  /** Ends everything: calls under way are cut, and as flow control stays shut nothing of this broker ever starts again. */
  stop(): void {
    this.flow.stop();
    for (const { withdraw } of this.#stored.values()) withdraw();
    this.options.deliverer.abortAll();
  }

  #create(spec: PublishSpec, callerIp: string): Message {
    const { clock } = this.options;
    const now = clock.now();
    const due = "afterMs" in spec.due ? now + spec.due.afterMs : clock.fromWallTime(spec.due.atWallMs);
    const messageId = `msg_${randomUUID().replaceAll("-", "")}`;
    return { ...spec, messageId, callerIp, createdAt: now, notBefore: Math.max(now, due), retried: 0 };
  }

  #store(message: Message, slot: QueueSlot | undefined): void {
    const stored: Stored = { message, phase: "delayed", withdraw: () => {}, slot, cancelRequested: false };
    this.#stored.set(message.messageId, stored);
    this.#note(message, "CREATED");
    if (message.flow !== undefined) this.flow.configure(message.flow.key, message.flow.limits);
    this.#whenDue(stored, message.notBefore);
  }

  #whenDue(stored: Stored, at: number): void {
    if (at <= this.options.clock.now()) {
      this.#enterQueue(stored);
      return;
    }
    stored.phase = "delayed";
    const timer = this.options.clock.setTimer(at, () => this.#enterQueue(stored));
    stored.withdraw = () => timer.cancel();
  }

  /** A retry keeps the place in the queue that its message already holds. */
  #enterQueue(stored: Stored): void {
    const { queueName } = stored.message;
    if (queueName === undefined || stored.slot !== undefined) {
      this.#enterWaitList(stored);
      return;
    }
    stored.phase = "waiting";
    const ticket: QueueTicket = {
      queueName,
      start: (slot) => {
        stored.slot = slot;
        this.#enterWaitList(stored);
      },
    };
    stored.withdraw = () => this.queues.leave(ticket);
    this.queues.enter(ticket);
  }

  #enterWaitList(stored: Stored): void {
    const { message } = stored;
    const key = message.flow?.key;
    const copied = message.retried === 0 && this.options.faults.current.deliver?.duplicate === true;
    const ticket = this.flow.ticket(key, () => void this.#deliver(stored, () => this.flow.release(ticket)));
    const copy = this.flow.ticket(key, () => void this.#deliverCopy(message, () => this.flow.release(copy)));
    stored.phase = "waiting";
    stored.withdraw = () => {
      this.flow.leave(ticket);
      this.flow.leave(copy);
    };
    this.flow.enter(ticket);
    if (copied) this.flow.enter(copy);
  }

  async #deliver(stored: Stored, release: () => void): Promise<void> {
    stored.phase = "inFlight";
    this.#note(stored.message, "ACTIVE");
    const outcome = await this.#attempt(stored.message, stored.message.retried);
    release();
    this.#settle(stored, outcome);
  }

  /** The second delivery of an at-least-once service: its outcome changes nothing. */
  async #deliverCopy(message: Message, release: () => void): Promise<void> {
    await this.#attempt(message, 0);
    release();
  }

  async #attempt(message: Message, retried: number): Promise<AttemptOutcome> {
    const { clock, deliverer } = this.options;
    const delivery = this.deliveries.begin(message.messageId, message.destination, retried, clock.now());
    const outcome = await deliverer.deliver(message, retried);
    delivery.status = outcome.kind === "answer" ? outcome.status : 0;
    return outcome;
  }

  #settle(stored: Stored, outcome: AttemptOutcome): void {
    const { message } = stored;
    const decision = decideRetry(outcome, message, Date.now());
    if (message.callback !== undefined) this.#call(callbackMessage(message.callback, { message, outcome }), stored);
    if (decision.kind === "delivered") {
      this.#finish(stored, "DELIVERED");
      return;
    }
    const reason = outcome.kind === "error" ? outcome.reason : `destination answered ${outcome.status}`;
    const seen = { error: reason, ...(outcome.kind === "answer" ? { responseStatus: outcome.status } : {}) };
    this.#note(message, "ERROR", seen);
    if (decision.kind === "failed") this.#bury(stored, outcome);
    else if (stored.cancelRequested) this.#finish(stored, "CANCELLED");
    else this.#retry(stored, decision.delayMs);
  }

  #retry(stored: Stored, delayMs: number): void {
    const { message } = stored;
    const at = this.options.clock.now() + delayMs;
    message.retried++;
    message.notBefore = at;
    this.#note(message, "RETRY", { nextDeliveryTime: at });
    this.#whenDue(stored, at);
  }

  #bury(stored: Stored, outcome: AttemptOutcome): void {
    const { message } = stored;
    const { dlqId } = this.deadLetters.add(message, outcome, this.options.clock.now());
    if (message.failureCallback !== undefined) {
      this.#call(callbackMessage(message.failureCallback, { message, outcome, dlqId }), stored);
    }
    this.#finish(stored, "FAILED");
  }

  /** In a queue the next message waits for the callbacks of this one. */
  #call(spec: PublishSpec, source: Stored): void {
    source.slot?.retain();
    this.#store(this.#create(spec, source.message.callerIp), source.slot);
  }

  #finish(stored: Stored, state: MessageState): void {
    this.#note(stored.message, state);
    this.#stored.delete(stored.message.messageId);
    stored.slot?.release();
  }

  #note(message: Message, state: MessageState, details: Partial<MessageEvent> = {}): void {
    this.log.add({ time: this.options.clock.now(), state, message, ...details });
  }
}
