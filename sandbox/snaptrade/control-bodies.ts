/** The bodies of the control API. They are parsed without loss, so that the numbers in account data stay as written. */
import { isLosslessNumber, type LosslessNumber } from "lossless-json";
import { z } from "zod";
import { WORK_TYPES } from "@/lib/domain";
import type { Fault } from "@/sandbox/snaptrade/faults";
import type { LimitSettings } from "@/sandbox/snaptrade/rate-limits";
import { isWireObject, readWire, type WireObject, writeWire } from "@/sandbox/snaptrade/wire";

const wholeNumber = z
  .custom<LosslessNumber>(isLosslessNumber, "must be a number")
  .transform((number) => Number(number.value))
  .pipe(z.int().min(0));
const wireObject = z.custom<WireObject>(isWireObject, "must be an object");
const wireList = z.array(wireObject);

/** What GET shows may be PUT back: the ids and versions in it are not looked at. */
export const accountBody = z.strictObject({
  accountId: z.unknown().optional(),
  userId: z.unknown().optional(),
  versions: z.unknown().optional(),
  /** Where an account that does not exist yet is to appear. */
  connectionId: z.string().optional(),
  positions: wireList.optional(),
  balances: wireList.optional(),
  orders: wireList.optional(),
  activities: wireList.optional(),
  disabled: z.boolean().optional(),
  sync_status: z.strictObject({ holdings: wireObject.optional(), transactions: wireObject.optional() }).optional(),
  data_freshness: z.strictObject({ as_of: z.string() }).optional(),
});
export type AccountBody = z.infer<typeof accountBody>;

export const faultBody = z
  .strictObject({
    match: z.strictObject({ path: z.string().min(1).optional(), accountId: z.string().optional() }).default({}),
    respond: z.strictObject({
      status: wholeNumber.pipe(z.int().min(200).max(599)).optional(),
      headers: z
        .record(
          z.string(),
          z.union([z.string(), z.null(), z.custom<LosslessNumber>(isLosslessNumber).transform(String)]),
        )
        .optional(),
      /** A string goes out as it is (HTML, cut JSON); anything else as JSON. */
      body: z
        .union([z.string(), z.array(z.unknown()), wireObject, z.null()])
        .transform((body) => (typeof body === "string" ? body : writeWire(body)))
        .optional(),
      delayMs: wholeNumber.optional(),
      drop: z
        .union([z.boolean(), z.literal("half")])
        .transform((drop) => (drop === "half" ? "half" : drop ? "whole" : undefined))
        .optional(),
    }),
    times: wholeNumber.pipe(z.int().min(1)).default(1),
  })
  .transform((fault): Fault => fault);

/** `headers`: true or false for all of them together, or an object for each kind. */
export const limitsBody = z
  .strictObject({
    perMinute: wholeNumber.optional(),
    accountPerMinute: wholeNumber.nullable().optional(),
    headers: z
      .union([
        z.boolean().transform((rateLimit) => (rateLimit ? { rateLimit } : { rateLimit, retryAfter: false })),
        z.strictObject({ rateLimit: z.boolean().optional(), retryAfter: z.boolean().optional() }),
      ])
      .optional(),
  })
  .transform(
    ({ perMinute, accountPerMinute, headers = {} }): Partial<LimitSettings> => ({
      ...(perMinute === undefined ? {} : { perMinute }),
      ...(accountPerMinute === undefined ? {} : { accountPerMinute }),
      ...("rateLimit" in headers && headers.rateLimit !== undefined ? { rateLimitHeaders: headers.rateLimit } : {}),
      ...("retryAfter" in headers && headers.retryAfter !== undefined ? { retryAfterHeader: headers.retryAfter } : {}),
    }),
  );

export const emitBody = wireObject.refine((body) => typeof body.eventType === "string", "eventType must be a string");

export const bumpBody = z.strictObject({ accountId: z.string(), workType: z.enum(WORK_TYPES) });

/** The value, or one line that says what is wrong with the body. */
export function readBody<T>(schema: z.ZodType<T>, text: string): { ok: true; value: T } | { ok: false; error: string } {
  let parsed: unknown;
  try {
    parsed = readWire(text === "" ? "{}" : text);
  } catch (error) {
    return { ok: false, error: `The body is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  const result = schema.safeParse(parsed);
  if (result.success) return { ok: true, value: result.data };
  const [issue] = result.error.issues;
  return { ok: false, error: `${issue?.path.join(".") || "body"}: ${issue?.message ?? "invalid"}` };
}
