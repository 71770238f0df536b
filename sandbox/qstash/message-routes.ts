import type { Broker } from "@/sandbox/qstash/broker";
import { filterableMessage, MESSAGE_FIELDS, parseFilter } from "@/sandbox/qstash/message-filter";
import { answer, type Reply, type Route, refusal } from "@/sandbox/qstash/route";
import { eventView, messageView } from "@/sandbox/qstash/views";

/** Messages that are still on their way, and the log of all. */
export function messageRoutes(broker: () => Broker): Route[] {
  return [
    {
      method: "GET",
      pattern: /^\/v2\/messages\/([^/]+)$/,
      handle: (_request, [messageId = ""]) => {
        const message = broker().message(messageId);
        return message === undefined ? notFound(messageId) : answer(200, messageView(message));
      },
    },
    {
      method: "DELETE",
      pattern: /^\/v2\/messages\/([^/]+)$/,
      handle: (_request, [messageId = ""]) =>
        broker().cancel(messageId) ? answer(200, { cancelled: 1 }) : notFound(messageId),
    },
    { method: "DELETE", pattern: /^\/v2\/messages\/?$/, handle: ({ query }) => cancelMatching(broker(), query) },
    { method: "GET", pattern: /^\/v2\/events\/?$/, handle: ({ query }) => listEvents(broker(), query, "events") },
    { method: "GET", pattern: /^\/v2\/logs\/?$/, handle: ({ query }) => listEvents(broker(), query, "logs") },
  ];
}

function notFound(messageId: string): Reply {
  return refusal(404, `message ${messageId} not found`);
}

/** Without any filter this cancels everything; `count` is accepted and ignored (the client's doc comments, messages.cancel). */
function cancelMatching(broker: Broker, query: URLSearchParams): Reply {
  const filter = parseFilter(query, [...MESSAGE_FIELDS, "messageIds"]);
  if ("error" in filter) return refusal(400, filter.error);
  const found = broker.messages().filter((message) => filter.matches(filterableMessage(message, message.createdAt)));
  return answer(200, { cancelled: found.filter(({ messageId }) => broker.cancel(messageId)).length });
}

/** Newest first. The cursor counts from the oldest entry, so that new entries do not move the pages. */
function listEvents(broker: Broker, query: URLSearchParams, name: "events" | "logs"): Reply {
  const filter = parseFilter(query, [...MESSAGE_FIELDS, "messageId", "messageIds", "state"]);
  if ("error" in filter) return refusal(400, filter.error);
  const states = query.get("state") === "IN_PROGRESS" ? ["ACTIVE", "RETRY", "ERROR", "IN_PROGRESS"] : undefined;
  const matching = broker.log.events.filter(({ message, state, time }) => {
    const { at, values } = filterableMessage(message, time);
    const shown = states?.includes(state) ? "IN_PROGRESS" : state;
    return filter.matches({ at, values: { ...values, state: shown } });
  });
  const end = Math.min(Number(filter.cursor ?? matching.length), matching.length);
  const start = Math.max(0, end - filter.count);
  const shown = matching.slice(start, end).toReversed().map(eventView);
  return answer(200, { cursor: start > 0 ? String(start) : undefined, [name]: shown });
}
