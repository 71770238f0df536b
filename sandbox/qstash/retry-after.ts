import { parseGoDuration } from "@/sandbox/qstash/durations";

export const ONE_DAY_MS = 86_400_000;

/** In the order in which they are asked; the docs name no precedence among them. */
const HEADERS = ["retry-after", "x-ratelimit-reset", "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"];
const RFC1123 = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * How long the destination asked to wait, in milliseconds: whole seconds, an RFC 1123 date, or a Go duration (QStash docs,
 * features/retry). Undefined if it said nothing readable, or more than one day: then the backoff of the message applies.
 * Header names are lower-case; `wallNow` is the real clock, because the destination wrote its date by that.
 */
export function retryAfterMs(headers: Record<string, string[]>, wallNow: number): number | undefined {
  for (const name of HEADERS) {
    const text = headers[name]?.[0]?.trim();
    const wait = text === undefined ? undefined : parseWait(text, wallNow);
    if (wait !== undefined) return wait <= ONE_DAY_MS ? wait : undefined;
  }
  return undefined;
}

function parseWait(text: string, wallNow: number): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  if (RFC1123.test(text)) {
    const at = Date.parse(text);
    return Number.isNaN(at) ? undefined : Math.max(0, at - wallNow);
  }
  return parseGoDuration(text);
}
