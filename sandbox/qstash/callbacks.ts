import type { AttemptOutcome } from "@/sandbox/qstash/attempt";
import { canonicalHeaderName } from "@/sandbox/qstash/header-names";
import type { CallbackSpec, Message, PublishSpec } from "@/sandbox/qstash/message";
import { parsePublish } from "@/sandbox/qstash/publish-spec";

export type CallbackCause = { message: Message; outcome: AttemptOutcome; dlqId?: string };

/**
 * The message to a callback URL after an attempt, or to a failure-callback URL after the last one: an ordinary message with the
 * documented JSON body (QStash docs, features/callbacks; `dlqId` for failures only).
 */
export function callbackMessage(callback: CallbackSpec, cause: CallbackCause): PublishSpec {
  const body = Buffer.from(JSON.stringify(callbackBody(cause)));
  const parsed = parsePublish({ destination: callback.url, headers: callback.configuration, body });
  if (parsed.kind === "refused") {
    throw new Error(`callback to ${callback.url} was accepted with its message and is now refused: ${parsed.error}`);
  }
  return parsed.spec;
}

/** Without an answer there is no status: 0, and the reason as the body. */
function callbackBody({ message, outcome, dlqId }: CallbackCause): Record<string, unknown> {
  const answer = outcome.kind === "answer" ? outcome : { status: 0, headers: {}, body: Buffer.from(outcome.reason) };
  return {
    status: answer.status,
    header: canonicalHeaders(answer.headers),
    body: answer.body.toString("base64"),
    retried: message.retried,
    maxRetries: message.maxRetries,
    ...(dlqId === undefined ? {} : { dlqId }),
    sourceMessageId: message.messageId,
    url: message.destination,
    method: message.method,
    sourceHeader: canonicalHeaders(message.headers),
    sourceBody: message.body.toString("base64"),
    notBefore: String(Math.floor(message.notBefore)),
    createdAt: String(Math.floor(message.createdAt)),
    callerIP: message.callerIp,
  };
}

function canonicalHeaders<T>(headers: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [canonicalHeaderName(name), value]));
}
