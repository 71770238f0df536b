import { z } from "zod";
import { timestampText } from "@/lib/provider/timestamp-text";
import { canonicalText } from "@/lib/webhook/canonical-text";
import { type EventType, effectOf, isEventType } from "@/lib/webhook/event-effects";
import { digestId, isId, webhookIdOf } from "@/lib/webhook/event-ids";
import { type JsonObject, renderJson, toPlain } from "@/lib/webhook/json-text";

/** The parts of a holdings update that can fail upstream while the event still comes. */
const HOLDINGS_PARTS = ["positions", "balances", "orders", "total_value"] as const;
type HoldingsPart = (typeof HOLDINGS_PARTS)[number];

/** How far ahead of our clock an event may be stamped: clocks differ, a forged future would stay fresh for ever. */
const MAX_AHEAD_MS = 10 * 60_000;

/** Ids are in the form of `isId`; one of another form is null here and still in the payload. */
export type WebhookEvent = {
  webhookId: string;
  eventType: EventType;
  accountId: string | null;
  connectionId: string | null;
  userId: string | null;
  /** Milliseconds since the epoch, cut down from `eventTimestamp`. */
  eventTimestampMs: number;
  /** UTC with the microseconds that were sent, as Postgres `timestamptz` reads it. */
  eventTimestamp: string;
  /**
   * Parts that the provider itself failed to update: their data must not be trusted to be new. Empty where it says that all
   * went well; null where it says nothing, which must not be taken for the former.
   */
  failedParts: HoldingsPart[] | null;
  /** The body without `webhookSecret`, every other field and number as it came. For a `json` column: `jsonb` refuses NUL. */
  payload: string;
};

export type ParsedEvent =
  | { kind: "event"; event: WebhookEvent }
  | { kind: "ignored"; webhookId: string; eventType: string | null }
  | { kind: "expired"; webhookId: string; eventType: EventType; reason: ExpiredReason }
  | { kind: "unroutable"; event: WebhookEvent; reason: UnroutableReason };

type ExpiredReason = "too old" | "too far ahead" | "no readable timestamp";
type IdName = "account" | "connection" | "user";
type UnroutableReason = `no ${IdName} id` | `${IdName} id of another form`;

/**
 * A text that says something; anything else is as good as absent, so that no schema drift refuses an event. Not `min(1)`:
 * zod asks values of other types for their length too, and `{"length": {}}` in the place of a text would throw.
 */
const text = z
  .string()
  .refine((given) => given !== "")
  .nullable()
  .catch(null);
/** Whether a part went well, null where nothing readable is said of it. */
const part = z
  .object({ success: z.boolean() })
  .transform(({ success }) => success)
  .nullable()
  .catch(null);
const saysNothing = { positions: null, balances: null, orders: null, total_value: null };

const wireEvent = z.object({
  webhookId: text,
  webookId: text,
  eventType: text,
  eventTimestamp: text,
  accountId: text,
  brokerageAuthorizationId: text,
  connectionId: text,
  userId: text,
  details: z
    .object({ positions: part, balances: part, orders: part, total_value: part } satisfies Record<
      HoldingsPart,
      unknown
    >)
    .catch(saysNothing),
});

/**
 * What an authentic body says. First the type: an unknown one is ignored. Then the time: older than `maxAgeMs`, more
 * than ten minutes ahead of `now` or unreadable is expired; without an offset it is UTC. Then the id that its effect
 * needs. The digest of its canonical text is the id of an event that carries none, so that a repetition of it is still known
 * (the misspelt `webookId` is in SnapTrade's own examples).
 */
export function parseEvent(value: JsonObject, now: number, maxAgeMs: number): ParsedEvent {
  const wire = wireEvent.parse(toPlain(value));
  const givenId = wire.webhookId ?? wire.webookId;
  const webhookId = givenId === null ? digestId(canonicalText(value)) : webhookIdOf(givenId);

  const { eventType } = wire;
  if (eventType === null || !isEventType(eventType)) return { kind: "ignored", webhookId, eventType };

  const eventTimestamp = instantText(wire.eventTimestamp);
  const eventTimestampMs = Date.parse(eventTimestamp ?? "");
  const late = lateness(eventTimestampMs, now, maxAgeMs);
  if (eventTimestamp === null || late !== null) {
    return { kind: "expired", webhookId, eventType, reason: late ?? "no readable timestamp" };
  }

  const given = {
    account: wire.accountId,
    connection: wire.brokerageAuthorizationId ?? wire.connectionId,
    user: wire.userId,
  };
  const event: WebhookEvent = {
    webhookId,
    eventType,
    accountId: idOrNull(given.account),
    connectionId: idOrNull(given.connection),
    userId: idOrNull(given.user),
    eventTimestampMs,
    eventTimestamp,
    failedParts: failedPartsOf(wire.details),
    payload: renderJson(withoutSecret(value)),
  };

  const { needs } = effectOf(event);
  if (needs === "none") return { kind: "event", event };
  const neededId = given[needs];
  if (neededId === null) return { kind: "unroutable", event, reason: `no ${needs} id` };
  if (!isId(neededId)) return { kind: "unroutable", event, reason: `${needs} id of another form` };
  return { kind: "event", event };
}

function failedPartsOf(details: Record<HoldingsPart, boolean | null>): HoldingsPart[] | null {
  const told = HOLDINGS_PARTS.filter((name) => details[name] !== null);
  return told.length === 0 ? null : told.filter((name) => details[name] === false);
}

/** A date alone is no moment: the age of such an event cannot be told. */
function instantText(given: string | null): string | null {
  const instant = given === null ? null : timestampText(given);
  return instant?.includes("T") ? instant : null;
}

function lateness(at: number, now: number, maxAgeMs: number): ExpiredReason | null {
  if (Number.isNaN(at)) return "no readable timestamp";
  if (at - now > MAX_AHEAD_MS) return "too far ahead";
  return now - at > maxAgeMs ? "too old" : null;
}

function idOrNull(given: string | null): string | null {
  return given !== null && isId(given) ? given : null;
}

function withoutSecret(value: JsonObject): JsonObject {
  const kept = new Map(value);
  kept.delete("webhookSecret");
  return kept;
}
