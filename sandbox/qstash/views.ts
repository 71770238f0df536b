import type { DeadLetter } from "@/sandbox/qstash/dead-letters";
import type { MessageEvent } from "@/sandbox/qstash/event-log";
import { canonicalHeaderName } from "@/sandbox/qstash/header-names";
import type { Message } from "@/sandbox/qstash/message";

type Json = Record<string, unknown>;

/** A message as the API shows it (QStash OpenAPI, Message). Unset fields are left out. */
export function messageView(message: Message): Json {
  const { flow, labels } = message;
  return {
    messageId: message.messageId,
    url: message.destination,
    method: message.method,
    header: headerView(Object.entries(message.headers).map(([name, value]) => [name, [value]])),
    ...bodyView(message.body, "body"),
    maxRetries: message.maxRetries,
    notBefore: Math.floor(message.notBefore),
    createdAt: Math.floor(message.createdAt),
    callback: message.callback?.url,
    failureCallback: message.failureCallback?.url,
    queueName: message.queueName,
    callerIP: message.callerIp,
    label: labels[0],
    labels: labels.length > 0 ? labels : undefined,
    retryDelayExpression: message.retryDelay?.source,
    flowControlKey: flow?.key,
    parallelism: flow?.limits.parallelism,
    rate: flow?.limits.rate,
    period: flow === undefined ? undefined : flow.limits.periodMs / 1_000,
  };
}

/** A DLQ entry: the message, its DLQ id and the last answer (QStash OpenAPI, DLQMessage). Status 0: no answer came. */
export function deadLetterView({ dlqId, message, outcome }: DeadLetter): Json {
  const shown = { ...messageView(message), dlqId };
  if (outcome.kind === "error") return { ...shown, responseStatus: 0, responseBody: outcome.reason };
  return {
    ...shown,
    responseStatus: outcome.status,
    responseHeader: headerView(Object.entries(outcome.headers)),
    ...bodyView(outcome.body, "responseBody"),
  };
}

/** A log entry (QStash OpenAPI, LogEntry). */
export function eventView({ time, state, message, error, nextDeliveryTime, responseStatus }: MessageEvent): Json {
  return {
    time: Math.floor(time),
    state,
    messageId: message.messageId,
    url: message.destination,
    method: message.method,
    header: headerView(Object.entries(message.headers).map(([name, value]) => [name, [value]])),
    body: message.body.toString("base64"),
    queueName: message.queueName,
    label: message.labels[0],
    labels: message.labels.length > 0 ? message.labels : undefined,
    flowControlKey: message.flow?.key,
    maxRetries: message.maxRetries,
    error,
    nextDeliveryTime: nextDeliveryTime === undefined ? undefined : Math.floor(nextDeliveryTime),
    responseStatus,
  };
}

function headerView(headers: [string, string[]][]): Record<string, string[]> {
  return Object.fromEntries(headers.map(([name, values]) => [canonicalHeaderName(name), values]));
}

/** Text where the bytes are UTF-8, else base64 under the name that the API has for it. */
function bodyView(body: Buffer, name: "body" | "responseBody"): Json {
  try {
    return { [name]: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body) };
  } catch {
    return { [`${name}Base64`]: body.toString("base64") };
  }
}
