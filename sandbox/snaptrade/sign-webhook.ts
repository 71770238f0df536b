/**
 * Signs webhooks as SnapTrade does. Written apart from the service's own verifier on purpose, so that the two check each
 * other.
 */
import { createHmac } from "node:crypto";
import { isLosslessNumber, parse, stringify } from "lossless-json";
import { isWireObject } from "@/sandbox/snaptrade/wire";

/**
 * The `Signature` header of a webhook with this body: base64 HMAC-SHA256 under the raw consumer key (not its
 * `encodeURI` form) of Python's `json.dumps(payload, separators=(",", ":"), sort_keys=True)` (SnapTrade docs, webhooks).
 * Throws SyntaxError when the body is not JSON.
 */
export function signWebhook(body: string, consumerKey: string): string {
  const payload = parse(body, undefined, { onDuplicateKey: ({ newValue }) => newValue });
  return createHmac("sha256", consumerKey).update(pythonJson(payload)).digest("base64");
}

/** A signed webhook with these fields, in their order. Numbers are written as JSON writes them, LosslessNumbers as they are. */
export function makeWebhook(
  fields: Readonly<Record<string, unknown>>,
  consumerKey: string,
): { body: string; signature: string } {
  const body = stringify(fields) ?? "{}";
  return { body, signature: signWebhook(body, consumerKey) };
}

function pythonJson(value: unknown): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return pythonString(value);
  if (isLosslessNumber(value)) return pythonNumber(value.value);
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(",")}]`;
  if (!isWireObject(value)) throw new Error(`Not JSON: a value of type ${typeof value}`);
  const members = Object.entries(value).sort(([a], [b]) => byCodePoints(a, b));
  return `{${members.map(([key, member]) => `${pythonString(key)}:${pythonJson(member)}`).join(",")}}`;
}

/** `ensure_ascii`: everything outside space to tilde is escaped, lower-case hex, one escape a UTF-16 unit. */
function pythonString(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Integers stay; a float is Python's `repr`: shortest digits, an exponent below 1e-4 and from 1e16, else a point. */
function pythonNumber(lexeme: string): string {
  if (/^-?\d+$/.test(lexeme)) return lexeme === "-0" ? "0" : lexeme;
  const value = Number(lexeme);
  if (!Number.isFinite(value)) return value < 0 ? "-Infinity" : "Infinity";
  const sign = Object.is(value, -0) || value < 0 ? "-" : "";
  const [mantissa = "0", power = "0"] = Math.abs(value).toExponential().split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const digits = mantissa.replace(".", "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const padded = digits.padEnd(exponent + 2, "0");
  return `${sign}${padded.slice(0, exponent + 1)}.${padded.slice(exponent + 1)}`;
}

/** Python orders strings by code point, JavaScript by UTF-16 unit; they differ for astral characters. */
function byCodePoints(a: string, b: string): number {
  const left = Array.from(a, (char) => char.codePointAt(0) ?? 0);
  const right = Array.from(b, (char) => char.codePointAt(0) ?? 0);
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
