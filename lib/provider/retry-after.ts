import type { Clock } from "@/lib/domain";

/** How long a cooldown may be: what to take when a 429 does not say, and the longest that is believed. */
export type CooldownBounds = { defaultMs: number; maxMs: number };

type RetryAfterSources = {
  /** `Retry-After`: seconds or an HTTP date (RFC 9110, 10.2.3). */
  retryAfter: string | undefined;
  /** `X-RateLimit-Reset` or `X-RateLimit-Account-Reset`: seconds until, not an epoch (SnapTrade docs, rate limiting). */
  reset: string | undefined;
  /** "Request was throttled. Expected available in 7 seconds." */
  text: string;
};

const MIN_MS = 1_000;
/** A "number of seconds" from here on is a point in time that somebody put into the wrong header (year 2001 on). */
const EPOCH_FROM = 1_000_000_000;

/**
 * The wait that a 429 asks for, in milliseconds, always finite and within [1 s, max]: the first of `Retry-After`, the
 * reset header, the number in the text that can be read, else the default (I6: a cooldown is never missing because a
 * header was odd). `warning` names each header that was there and could not be read.
 */
export function retryAfter(
  sources: RetryAfterSources,
  bounds: CooldownBounds,
  clock: Clock,
): { ms: number; warning?: string } {
  const fromHeader = readSeconds(sources.retryAfter) ?? readDate(sources.retryAfter, clock);
  const fromReset = readSeconds(sources.reset);
  const fromText = readSeconds(/(\d+(?:\.\d+)?) ?seconds?\b/i.exec(sources.text)?.[1]);
  const asked = fromHeader ?? fromReset ?? fromText ?? bounds.defaultMs;
  const ms = Math.ceil(Math.min(Math.max(asked, MIN_MS), Math.max(bounds.maxMs, MIN_MS)));

  const unread: string[] = [];
  if (sources.retryAfter !== undefined && fromHeader === undefined)
    unread.push(quote("Retry-After", sources.retryAfter));
  if (sources.reset !== undefined && fromReset === undefined) unread.push(quote("reset header", sources.reset));
  return unread.length > 0 ? { ms, warning: unread.join("; ") } : { ms };
}

function readSeconds(text: string | undefined): number | undefined {
  const trimmed = text?.trim() ?? "";
  if (!/^\d{1,15}(?:\.\d{1,9})?$/.test(trimmed)) return undefined;
  const seconds = Number(trimmed);
  return seconds < EPOCH_FROM ? seconds * 1_000 : undefined;
}

/** The three forms of RFC 9110, 5.6.7; the third (asctime) carries no zone and means UTC. */
function readDate(text: string | undefined, clock: Clock): number | undefined {
  const trimmed = text?.trim() ?? "";
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? /i.test(trimmed)) return undefined;
  const at = Date.parse(/(?:GMT|UTC|[+-]\d{4})$/i.test(trimmed) ? trimmed : `${trimmed} GMT`);
  return Number.isNaN(at) ? undefined : at - clock();
}

function quote(name: string, value: string): string {
  return `${name} is not understood: ${JSON.stringify(value.slice(0, 40))}`;
}
