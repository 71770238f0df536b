import { isLosslessNumber, LosslessNumber, parse, stringify } from "lossless-json";
import { isDecimalText } from "@/lib/provider/decimal-text";

type ParsedJson = { ok: true; json: unknown } | { ok: false; reason: string };

// One alternative an escape: a proper surrogate pair, a NUL or lone surrogate, anything else that is escaped.
const ESCAPE =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u(?:0000|[dD][89a-fA-F][\da-fA-F]{2})|\\[\s\S]/g;
const UNSTORABLE_ESCAPE_LENGTH = "\\u0000".length;

/** Far above any answer. What is written again, or stored as jsonb, takes more stack than what was parsed. */
const MAX_DEPTH = 100;

/**
 * Parses an answer so that each number keeps its text (as `LosslessNumber`). A number that Postgres `numeric` could
 * not hold makes the whole text unreadable. Postgres can store neither NUL nor half of a surrogate pair in text or
 * jsonb; they become U+FFFD here, so that one odd description cannot make an account unwritable for ever.
 */
export function parseProviderJson(text: string): ParsedJson {
  if (isTooDeep(text)) return { ok: false, reason: "JSON is nested too deep" };
  try {
    return { ok: true, json: parse(storable(text), undefined, toNumber) };
  } catch (error) {
    // SyntaxError quotes at most one token of the text.
    return { ok: false, reason: error instanceof SyntaxError ? error.message : "unreadable" };
  }
}

/** By its brackets outside strings; of a text that is not JSON the answer does not matter. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString && character === "\\") at += 1;
    else if (character === '"') inString = !inString;
    else if (inString) continue;
    else if (character === "[" || character === "{") depth += 1;
    else if (character === "]" || character === "}") depth -= 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

/** A parsed value as JSON text again, with every number spelt as it came. */
export function toJsonText(value: unknown): string {
  return stringify(value) ?? "null";
}

/** A parsed number or string as text; `undefined` for anything else. */
export function scalarText(value: unknown): string | undefined {
  if (isLosslessNumber(value)) return value.toString();
  return typeof value === "string" ? value : undefined;
}

function toNumber(lexeme: string): LosslessNumber {
  if (!isDecimalText(lexeme)) throw new SyntaxError(`Number too large to store: ${lexeme.slice(0, 40)}`);
  return new LosslessNumber(lexeme);
}

function storable(text: string): string {
  if (!/\\u(?:0000|[dD][89a-fA-F])/.test(text)) return text;
  return text.replace(ESCAPE, (found) => (found.length === UNSTORABLE_ESCAPE_LENGTH ? "\\ufffd" : found));
}
