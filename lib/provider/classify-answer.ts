import { z } from "zod";
import type { Clock } from "@/lib/domain";
import { parseProviderJson, scalarText } from "@/lib/provider/json-text";
import type { Failure, LimitReport } from "@/lib/provider/provider";
import { type CooldownBounds, retryAfter } from "@/lib/provider/retry-after";

/** An HTTP answer as far as it came. `header` takes lower-case names. */
export type WireAnswer = { status: number; header: (name: string) => string | undefined; body: string };

/**
 * The one table of what an HTTP status of SnapTrade means (ARCHITECTURE.md, A run). `null`: 200, go on and read
 * the body. The body only refines a status and may be cut, HTML or empty.
 */
export function classifyAnswer(answer: WireAnswer, cooldown: CooldownBounds, clock: Clock): Failure | null {
  const { status } = answer;
  const { code, text, isObject } = readErrorBody(answer.body);
  const reason = text === "" ? `HTTP ${status}` : `HTTP ${status}: ${text}`;
  switch (status) {
    case 200:
      return null;
    case 429:
      return classifyThrottled(answer, code, cooldown, clock);
    case 503:
      return code === "3002" ? { kind: "busy" } : { kind: "failed", status, reason };
    case 404:
      // SnapTrade answers a JSON object; anything else comes from something in between, or from a wrong base URL, and
      // says nothing about the account. Believing it would close every account at once (I7).
      return isObject ? { kind: "gone" } : { kind: "failed", status, reason };
    case 402:
    case 410:
      return { kind: "refused", status, reason };
    case 400:
    case 401:
    case 403:
      return { kind: "unauthorized", status, reason };
    case 501:
      return { kind: "unsupported" };
    default:
      return { kind: "failed", status, reason };
  }
}

/**
 * Which of the limits was hit (SnapTrade docs, rate limiting): a header at 0 names it; without one, code `throttled` is
 * the manual refresh of one connection; anything else, a 429 without headers among it, is taken for the whole client.
 */
function classifyThrottled(
  { header, body }: WireAnswer,
  code: string | undefined,
  cooldown: CooldownBounds,
  clock: Clock,
): Failure {
  const clientSpent = wholeNumber(header("x-ratelimit-remaining")) === 0;
  const accountSpent = wholeNumber(header("x-ratelimit-account-remaining")) === 0;
  const scope = clientSpent ? "client" : accountSpent ? "account" : code === "throttled" ? "connection" : "client";
  const resetOf = {
    client: header("x-ratelimit-reset"),
    account: header("x-ratelimit-account-reset"),
    connection: undefined,
  };
  const { ms, warning } = retryAfter(
    { retryAfter: header("retry-after"), reset: resetOf[scope], text: body.slice(0, 1_000) },
    cooldown,
    clock,
  );
  return { kind: "throttled", scope, retryAfterMs: ms, ...(warning === undefined ? {} : { warning }) };
}

/** What the answer says about the client-wide limit. A value that cannot be one is absent, like a missing header. */
export function readLimits(header: WireAnswer["header"]): LimitReport {
  const limit = wholeNumber(header("x-ratelimit-limit"));
  const remaining = wholeNumber(header("x-ratelimit-remaining"));
  const resetSeconds = wholeNumber(header("x-ratelimit-reset"));
  return {
    ...(limit !== undefined && limit > 0 ? { limit } : {}),
    ...(remaining === undefined ? {} : { remaining }),
    ...(resetSeconds === undefined ? {} : { resetSeconds }),
  };
}

/** Headers count seconds and calls; ten digits and more are an epoch in the wrong place. */
function wholeNumber(text: string | undefined): number | undefined {
  const trimmed = text?.trim() ?? "";
  return /^\d{1,9}$/.test(trimmed) ? Number(trimmed) : undefined;
}

const errorBody = z
  .object({
    code: z.unknown(),
    default_code: z.unknown(),
    detail: z.unknown(),
    default_detail: z.unknown(),
    error: z.unknown(),
  })
  .partial();

/** SnapTrade's error bodies are not uniform: text in `detail`, `default_detail` or `error`, code a number or a string. */
function readErrorBody(body: string): { code: string | undefined; text: string; isObject: boolean } {
  const nothing = { code: undefined, isObject: false };
  if (body.trim() === "") return { ...nothing, text: "" };
  if (isMarkup(body)) return { ...nothing, text: "the body is a page, not JSON" };
  const parsed = parseProviderJson(body);
  const fields = parsed.ok ? errorBody.safeParse(parsed.json) : undefined;
  if (!fields?.success) return { ...nothing, text: "the body is not a JSON object" };
  const { detail, default_detail, error, code, default_code } = fields.data;
  const text = scalarText(detail) ?? scalarText(default_detail) ?? scalarText(error) ?? "";
  return { code: scalarText(code) ?? scalarText(default_code), text, isObject: true };
}

function isMarkup(body: string): boolean {
  return body.trimStart().startsWith("<");
}
