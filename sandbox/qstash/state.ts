import type { Broker } from "@/sandbox/qstash/broker";
import type { Delivery } from "@/sandbox/qstash/deliveries";
import type { Faults } from "@/sandbox/qstash/faults";
import type { FlowKeyInfo } from "@/sandbox/qstash/flow-key";

export type QStashState = {
  /** API requests of clients, refused ones too; the control API is not counted. */
  requests: number;
  /** The same by the first part of the path: publish, enqueue, batch, messages, ... */
  requestsByKind: Record<string, number>;
  /** Messages that publishers brought; those that were answered as duplicates are in `deduplicated`, callbacks in neither. */
  published: number;
  deduplicated: number;
  /** Every request to a destination, retries and callbacks included, in the order of sending. */
  deliveries: Delivery[];
  deliveriesByPath: Record<string, number>;
  /** Messages that wait for their delay or their retry. */
  pending: number;
  /** Until the first of those is due, in emulated milliseconds; null: none waits. */
  nextDueInMs: number | null;
  /** Messages on a wait list or in a queue. */
  waiting: number;
  /** Calls to destinations under way. */
  inFlight: number;
  dlq: number;
  flowControl: FlowKeyInfo[];
  faults: Faults;
  /** Emulated time, milliseconds since the epoch. */
  clockMs: number;
  timeScale: number;
};

/** Counts what clients ask of the API. */
export class RequestCounter {
  requests = 0;
  readonly byKind: Record<string, number> = {};

  count(target: string): void {
    const kind = /^\/v2\/([A-Za-z]+)/.exec(target)?.[1] ?? "other";
    this.requests++;
    this.byKind[kind] = (this.byKind[kind] ?? 0) + 1;
  }
}

export type StateSources = {
  broker: Broker;
  counter: RequestCounter;
  faults: Faults;
  clockMs: number;
  timeScale: number;
};

/** A copy of everything that a test may want to know. */
export function readState({ broker, counter, faults, clockMs, timeScale }: StateSources): QStashState {
  return {
    requests: counter.requests,
    requestsByKind: { ...counter.byKind },
    published: broker.published,
    deduplicated: broker.deduplicated,
    deliveries: broker.deliveries.all.map((delivery) => ({ ...delivery })),
    deliveriesByPath: { ...broker.deliveries.byPath },
    ...broker.counts(),
    nextDueInMs: nextDueInMs(broker, clockMs),
    dlq: broker.deadLetters.size,
    flowControl: broker.flow.list(),
    faults,
    clockMs,
    timeScale,
  };
}

function nextDueInMs(broker: Broker, clockMs: number): number | null {
  const ahead = broker.messages().flatMap(({ notBefore }) => (notBefore > clockMs ? [notBefore - clockMs] : []));
  return ahead.length === 0 ? null : Math.min(...ahead);
}
