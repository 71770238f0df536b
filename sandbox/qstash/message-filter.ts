import type { Message } from "@/sandbox/qstash/message";

/** What a record offers to filters; a list matches if any of its values does. */
export type Filterable = { at: number; values: Partial<Record<string, string | string[]>> };

export type Filter = { matches(record: Filterable): boolean; count: number; cursor: string | undefined };

export const MESSAGE_FIELDS = [
  "url",
  "host",
  "path",
  "topicName",
  "scheduleId",
  "queueName",
  "callerIp",
  "callerIP",
  "label",
  "flowControlKey",
];
const COMMON = ["fromDate", "toDate", "count", "cursor"];
const DEFAULT_COUNT = 100;

/**
 * Reads the filters of a list or bulk call: several values of one are alternatives, given by repeating the parameter or with commas;
 * different ones must all match; dates are inclusive milliseconds (QStash OpenAPI). An unknown parameter is an error, so that a
 * typing mistake does not act on everything.
 */
export function parseFilter(query: URLSearchParams, fields: string[]): Filter | { error: string } {
  const wanted = new Map<string, Set<string>>();
  for (const [name, value] of query) {
    if (!fields.includes(name) && !COMMON.includes(name)) return { error: `unknown query parameter ${name}` };
    if (fields.includes(name)) wanted.set(name, new Set([...(wanted.get(name) ?? []), value, ...value.split(",")]));
  }
  const [from, to, count] = [number(query, "fromDate"), number(query, "toDate"), number(query, "count")];
  if ([from, to, count].some(Number.isNaN)) return { error: "fromDate, toDate and count must be whole numbers" };
  return {
    count: count ?? DEFAULT_COUNT,
    cursor: query.get("cursor") || undefined,
    matches: ({ at, values }) =>
      at >= (from ?? Number.NEGATIVE_INFINITY) &&
      at <= (to ?? Number.POSITIVE_INFINITY) &&
      [...wanted].every(([name, accepted]) => [values[name] ?? []].flat().some((value) => accepted.has(value))),
  };
}

export function filterableMessage(message: Message, at: number): Filterable {
  const { host, pathname } = new URL(message.destination);
  return {
    at: Math.floor(at),
    values: {
      messageId: message.messageId,
      messageIds: message.messageId,
      url: message.destination,
      host,
      path: pathname,
      callerIp: message.callerIp,
      callerIP: message.callerIp,
      label: message.labels,
      ...(message.queueName === undefined ? {} : { queueName: message.queueName }),
      ...(message.flow === undefined ? {} : { flowControlKey: message.flow.key }),
    },
  };
}

/** One page and the cursor of the next one: the position in the list, which the caller keeps stable. */
export function page<T>(items: T[], { count, cursor }: Filter): { items: T[]; cursor: string | undefined } {
  const start = Number(cursor ?? 0);
  const end = start + count;
  return { items: items.slice(start, end), cursor: end < items.length ? String(end) : undefined };
}

function number(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  return /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
}
