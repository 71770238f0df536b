import type { Message } from "@/sandbox/qstash/message";

/** QStash docs, howto/debug-logs. */
export type MessageState =
  | "CREATED"
  | "ACTIVE"
  | "RETRY"
  | "ERROR"
  | "DELIVERED"
  | "FAILED"
  | "CANCEL_REQUESTED"
  | "CANCELLED";

export type MessageEvent = {
  time: number;
  state: MessageState;
  message: Message;
  error?: string;
  nextDeliveryTime?: number;
  responseStatus?: number;
};

const MOST_EVENTS = 50_000;

/** What happened to the messages, oldest first. Old entries are dropped, as the log retention of the service does. */
export class EventLog {
  #events: MessageEvent[] = [];

  get events(): readonly MessageEvent[] {
    return this.#events;
  }

  add(event: MessageEvent): void {
    this.#events.push(event);
    if (this.#events.length > MOST_EVENTS) this.#events = this.#events.slice(MOST_EVENTS / 5);
  }
}
