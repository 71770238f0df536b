import { z } from "zod";
import { isDecimalText } from "@/lib/provider/decimal-text";
import { scalarText, toJsonText } from "@/lib/provider/json-text";
import type { NumberText } from "@/lib/provider/provider";
import { timestampText } from "@/lib/provider/timestamp-text";
import { isId } from "@/lib/webhook/event-ids";

/**
 * The pieces of which the answers are made. Tolerant of what SnapTrade leaves out (every field is optional in its SDK)
 * and of fields that we do not know; strict about the type of what is there.
 */

export type Read<T> = { ok: true; value: T } | { ok: false; reason: string };

/** An object with these fields and any others. A parsed number is an instance of a class, hence the first step. */
export function wireObject<S extends z.ZodRawShape>(shape: S) {
  return z.preprocess((value) => scalarText(value) ?? value, z.object(shape));
}

/** A decimal number, sent as a JSON number (activities, balances) or as a string (positions, orders). */
export const wireNumber = z
  .unknown()
  .optional()
  .transform((value, context): NumberText => {
    if (value === null || value === undefined) return null;
    const text = scalarText(value);
    if (text !== undefined && isDecimalText(text)) return text;
    context.addIssue({ code: "custom", message: `expected a decimal number, got ${toJsonText(value)}` });
    return z.NEVER;
  });

/** Absent, null and empty are one thing: nothing was said. */
export const wireText = z
  .string()
  .nullish()
  .transform((text) => text || null);

/**
 * An id that must be there: text as sent. Not `min` and `max`: zod asks values of other types for their length too,
 * and `{"length": {...}}` in the place of a text could throw.
 */
export const wireId = z.string().refine(({ length }) => length > 0 && length <= 200, "expected 1 to 200 characters");

/** The id of an account or a connection: it becomes part of Redis keys, so it has the form of those that webhooks bring. */
export const wireKeyId = z.string().refine(isId, "expected 1 to 128 characters of A-Z, a-z, 0-9, _, . and -");

/** See `timestampText`: unreadable is null. */
export const wireTime = z
  .string()
  .nullish()
  .transform((text) => (text ? timestampText(text) : null));

export const wireFlag = z
  .boolean()
  .nullish()
  .transform((flag) => flag ?? null);

/** `"USD"` in positions, `{id, code, name}` in balances and activities. */
export const wireCurrency = z
  .union([wireText, z.object({ code: wireText }).transform(({ code }) => code)])
  .optional()
  .transform((code) => code ?? null);

/** Parses the envelope of an answer; the reason names the field and what was wrong with it. */
export function readShape<S extends z.ZodType>(what: string, schema: S, json: unknown): Read<z.output<S>> {
  const parsed = schema.safeParse(json);
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, reason: describe(what, parsed.error) };
}

/**
 * Parses each element and gives it on with its own text (`raw`, numbers as they came). The first element that is not
 * of the documented shape fails the list: a list with a hole would delete the row that is missing (I7).
 */
export function readList<S extends z.ZodType, T>(
  what: string,
  list: readonly unknown[],
  schema: S,
  make: (element: z.output<S>, raw: string) => T,
): Read<T[]> {
  const values: T[] = [];
  for (const [index, wire] of list.entries()) {
    const element = readShape(`${what}[${index}]`, schema, wire);
    if (!element.ok) return element;
    values.push(make(element.value, toJsonText(wire)));
  }
  return { ok: true, value: values };
}

function describe(what: string, error: z.ZodError): string {
  const [issue] = error.issues;
  const path = [what, ...(issue?.path ?? []).map(String)].join(".");
  return `${path}: ${issue?.message ?? "not of the documented shape"}`;
}
