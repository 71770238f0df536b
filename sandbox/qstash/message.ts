import type { RetryDelay } from "@/sandbox/qstash/retry-delay-expression";

/** Lower-case names, one value each. */
export type HeaderRecord = Record<string, string>;

/** Limits of a flow-control key as one message states them. Undefined: not limited. */
export type FlowLimits = { parallelism: number | undefined; rate: number | undefined; periodMs: number };

export type CallbackSpec = { url: string; configuration: HeaderRecord };

/** What a publisher asked for, read and checked. `configuration` keeps its headers as they came, for callbacks and DLQ retries. */
export type PublishSpec = {
  destination: string;
  method: string;
  /** Sent to the destination: `Content-Type` and what was prefixed with `Upstash-Forward-`. */
  headers: HeaderRecord;
  body: Buffer;
  configuration: HeaderRecord;
  maxRetries: number;
  retryDelay: RetryDelay | undefined;
  timeoutMs: number;
  due: { afterMs: number } | { atWallMs: number };
  callback: CallbackSpec | undefined;
  failureCallback: CallbackSpec | undefined;
  labels: string[];
  flow: { key: string; limits: FlowLimits } | undefined;
  deduplicationId: string | undefined;
  queueName: string | undefined;
};

/** A stored message. Times are emulated milliseconds since the epoch. */
export type Message = PublishSpec & {
  messageId: string;
  callerIp: string;
  createdAt: number;
  notBefore: number;
  /** How often it has been delivered without success so far: `Upstash-Retried` of its next delivery. */
  retried: number;
};
