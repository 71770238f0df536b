import type { Broker } from "@/sandbox/qstash/broker";
import type { DeadLetter } from "@/sandbox/qstash/dead-letters";
import type { HeaderRecord } from "@/sandbox/qstash/message";
import { type Filter, filterableMessage, MESSAGE_FIELDS, page, parseFilter } from "@/sandbox/qstash/message-filter";
import { answer, type Reply, type Route, refusal } from "@/sandbox/qstash/route";
import { deadLetterView } from "@/sandbox/qstash/views";

/** All but host and path, which this API refuses (the client's doc comments, filter types). */
const DLQ_FIELDS = [
  ...MESSAGE_FIELDS.filter((name) => name !== "host" && name !== "path"),
  "messageId",
  "dlqIds",
  "responseStatus",
];

type Selection = { letters: DeadLetter[]; missing: string[]; cursor: string | undefined };

/** The dead letter queue. Retrying publishes new messages and removes the old ones. */
export function dlqRoutes(broker: () => Broker): Route[] {
  return [
    {
      method: "GET",
      pattern: /^\/v2\/dlq\/?$/,
      handle: ({ query }) =>
        withSelection(broker(), query, ({ letters, cursor }) =>
          answer(200, { cursor, messages: letters.map(deadLetterView) }),
        ),
    },
    {
      method: "GET",
      pattern: /^\/v2\/dlq\/([^/]+)$/,
      handle: (_request, [dlqId = ""]) => {
        const letter = broker().deadLetters.get(dlqId);
        return letter === undefined ? notFound(dlqId) : answer(200, deadLetterView(letter));
      },
    },
    {
      method: "DELETE",
      pattern: /^\/v2\/dlq\/([^/]+)$/,
      handle: (_request, [dlqId = ""]) => (broker().deadLetters.remove(dlqId) ? answer(200) : notFound(dlqId)),
    },
    {
      method: "DELETE",
      pattern: /^\/v2\/dlq\/?$/,
      handle: ({ query }) =>
        withSelection(broker(), query, ({ letters, cursor }) => {
          const deleted = letters.filter(({ dlqId }) => broker().deadLetters.remove(dlqId)).length;
          return answer(200, { deleted, cursor: cursor === undefined ? undefined : "0" });
        }),
    },
    {
      method: "POST",
      pattern: /^\/v2\/dlq\/retry\/([^/]+)$/,
      handle: ({ headers }, [dlqId = ""]) => {
        const retried = broker().retryDeadLetter(dlqId, overridesOf(headers));
        if (retried === undefined) return notFound(dlqId);
        return "kind" in retried
          ? refusal(retried.status, retried.error)
          : answer(201, { messageId: retried.messageId });
      },
    },
    {
      method: "POST",
      pattern: /^\/v2\/dlq\/retry\/?$/,
      handle: ({ query, headers }) =>
        withSelection(broker(), query, (selection) => retryAll(broker(), selection, overridesOf(headers))),
    },
  ];
}

function notFound(dlqId: string): Reply {
  return refusal(404, `message ${dlqId} not found in the DLQ`);
}

function overridesOf(headers: HeaderRecord): HeaderRecord {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("upstash-")));
}

function retryAll(broker: Broker, { letters, missing, cursor }: Selection, overrides: HeaderRecord): Reply {
  if (missing.length > 0) return notFound(missing.join(", "));
  const responses: { messageId: string }[] = [];
  for (const { dlqId } of letters) {
    const retried = broker.retryDeadLetter(dlqId, overrides);
    if (retried !== undefined && "kind" in retried) return refusal(retried.status, retried.error);
    if (retried !== undefined) responses.push({ messageId: retried.messageId });
  }
  // What was retried is gone from the list, so the next page begins at its start again.
  return answer(201, { cursor: cursor === undefined ? "" : "0", responses });
}

function withSelection(broker: Broker, query: URLSearchParams, use: (selection: Selection) => Reply): Reply {
  const filter = parseFilter(query, DLQ_FIELDS);
  if ("error" in filter) return refusal(400, filter.error);
  const ids = query.getAll("dlqIds").flatMap((value) => value.split(","));
  return use(ids.length > 0 ? selectByIds(broker, ids) : selectByFilter(broker, filter));
}

/** Given ids, other filters are ignored (QStash OpenAPI). */
function selectByIds(broker: Broker, ids: string[]): Selection {
  const letters = ids.map((dlqId) => broker.deadLetters.get(dlqId));
  return {
    letters: letters.filter((letter) => letter !== undefined),
    missing: ids.filter((_dlqId, index) => letters[index] === undefined),
    cursor: undefined,
  };
}

function selectByFilter(broker: Broker, filter: Filter): Selection {
  const matching = broker.deadLetters.all().filter(({ dlqId, message, outcome }) => {
    const { values } = filterableMessage(message, 0);
    const responseStatus = String(outcome.kind === "answer" ? outcome.status : 0);
    return filter.matches({ at: Number(dlqId.split("-", 1)[0]), values: { ...values, responseStatus } });
  });
  const { items, cursor } = page(matching, filter);
  return { letters: items, missing: [], cursor };
}
