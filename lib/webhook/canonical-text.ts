import { type JsonStyle, type JsonValue, renderJson } from "@/lib/webhook/json-text";

/**
 * The text that SnapTrade signs: what Python writes for `json.dumps(value, separators=(",", ":"), sort_keys=True)` of
 * the whole parsed body, no field removed (SnapTrade docs, webhooks, verification sample).
 */
export function canonicalText(value: JsonValue): string {
  return renderJson(value, PYTHON);
}

const PYTHON: JsonStyle = {
  string: pythonString,
  number: pythonNumber,
  entries: (object) => [...object].sort(([a], [b]) => compareCodePoints(a, b)),
};

/** Python compares strings by code point; JavaScript's `<` compares UTF-16 units, which sorts U+1F600 before U+FB00. */
function compareCodePoints(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  // The first difference may be in the second half of a pair: compare from where the character begins. Before two lone
  // halves that are alike nothing differs yet.
  const isInPair = at > 0 && isHighSurrogate(a.charCodeAt(at - 1));
  return (isInPair && compareCharacters(a, b, at - 1)) || compareCharacters(a, b, at);
}

/** The code points at a place; an end comes before everything. */
function compareCharacters(a: string, b: string, at: number): number {
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** `ensure_ascii`: DEL and everything above as lower-case `\uXXXX` for each UTF-16 unit. The rest is as `JSON.stringify`. */
function pythonString(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** An integer stays as it came (`-0` is 0); anything with a point or an exponent is a float and gets Python's `repr`. */
function pythonNumber(text: string): string {
  if (/^-?\d+$/.test(text)) return text === "-0" ? "0" : text;
  return pythonFloat(Number(text));
}

/** Both languages print the shortest digits that read back as the same float; they differ in where the point goes. */
function pythonFloat(float: number): string {
  if (!Number.isFinite(float)) return float > 0 ? "Infinity" : "-Infinity"; // 1e400: Python reads and writes inf
  const sign = float < 0 || Object.is(float, -0) ? "-" : "";
  const [mantissa = "0", exponentText = "0"] = Math.abs(float).toExponential().split("e");
  const exponent = Number(exponentText);
  const digits = mantissa.replace(".", "");
  if (exponent < -4 || exponent >= 16) {
    const exponentDigits = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${exponentDigits}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}
