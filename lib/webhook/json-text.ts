/**
 * JSON without loss. `JSON.parse` forgets what the signature is made of: `5.0` becomes `5`, integers above 2^53 are
 * rounded (SnapTrade docs, webhooks: the signed text is Python's `json.dumps` of the parsed body). lossless-json keeps
 * the numbers, but recurses without a limit and takes `{"a":[],"a":{}}` for a repetition of one value, where Python
 * lets the last win. So the engine's own parser checks the grammar and the walk below takes the values from the text.
 */

/** A number as it stood in the text. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

/** A map, so that `__proto__` is a key like any other and integer-like keys keep their place. */
export type JsonObject = ReadonlyMap<string, JsonValue>;
export type JsonValue = null | boolean | string | JsonNumber | JsonValue[] | JsonObject;

/** The object at the top is depth 1. Everything that walks a `JsonValue` may recurse, because of this limit. */
const MAX_DEPTH = 100;

export type JsonRead = { kind: "ok"; value: JsonObject } | { kind: "bad"; reason: BadJson };
type BadJson = "not UTF-8" | "not JSON" | "not an object" | "nested too deeply";

/**
 * Reads the bytes of one JSON object. Never throws. A byte order mark, `NaN` and `Infinity` are not JSON; a repeated key
 * takes the last value; a lone surrogate (possible only as an escape) stays as it is.
 */
export function parseWebhookJson(bytes: Uint8Array): JsonRead {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { kind: "bad", reason: "not UTF-8" };
  }
  try {
    JSON.parse(text);
  } catch {
    return { kind: "bad", reason: "not JSON" };
  }
  try {
    const value = walk(text);
    return value instanceof Map ? { kind: "ok", value } : { kind: "bad", reason: "not an object" };
  } catch (error) {
    if (error instanceof TooDeep) return { kind: "bad", reason: "nested too deeply" };
    throw error;
  }
}

class TooDeep extends Error {}

/** Expects valid JSON: the grammar has been checked. */
function walk(text: string): JsonValue {
  let at = 0;
  return readValue(1);

  function readValue(depth: number): JsonValue {
    skipSpace();
    switch (text[at]) {
      case "{":
        return readObject(depth);
      case "[":
        return readArray(depth);
      case '"':
        return readString();
      case "t":
        at += 4;
        return true;
      case "f":
        at += 5;
        return false;
      case "n":
        at += 4;
        return null;
      default:
        return readNumber();
    }
  }

  function readObject(depth: number): JsonObject {
    if (depth > MAX_DEPTH) throw new TooDeep();
    const object = new Map<string, JsonValue>();
    while (nextItem("}")) {
      const key = readString();
      skipSpace();
      at += 1; // the colon
      object.set(key, readValue(depth + 1));
    }
    return object;
  }

  function readArray(depth: number): JsonValue[] {
    if (depth > MAX_DEPTH) throw new TooDeep();
    const array: JsonValue[] = [];
    while (nextItem("]")) array.push(readValue(depth + 1));
    return array;
  }

  /** Steps over the opening bracket or a comma to the next item; false at `end`, which is passed. */
  function nextItem(end: "}" | "]"): boolean {
    skipSpace();
    if (text[at] !== end) {
      at += 1;
      skipSpace();
    }
    if (text[at] !== end) return true;
    at += 1;
    return false;
  }

  function readString(): string {
    const start = at;
    at += 1;
    while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    at += 1;
    return String(JSON.parse(text.slice(start, at)));
  }

  function readNumber(): JsonNumber {
    const start = at;
    while ("+-.0123456789Ee".includes(text[at] ?? " ")) at += 1;
    return new JsonNumber(text.slice(start, at));
  }

  function skipSpace(): void {
    while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at += 1;
  }
}

/** Plain values for a schema: objects have no prototype, numbers are JavaScript's (and may be rounded). */
export function toPlain(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return Number(value.text);
  if (Array.isArray(value)) return value.map(toPlain);
  if (!(value instanceof Map)) return value;
  const plain: Record<string, unknown> = Object.create(null);
  for (const [key, member] of value) plain[key] = toPlain(member);
  return plain;
}

/** How `renderJson` writes the three things that writers differ in. */
export type JsonStyle = {
  string: (text: string) => string;
  number: (text: string) => string;
  entries: (object: JsonObject) => Iterable<[string, JsonValue]>;
};

const LOSSLESS: JsonStyle = {
  string: JSON.stringify,
  number: (text) => text,
  entries: (object) => object,
};

/** Compact JSON text of a value; without a style, with every number and every key's place as they came. */
export function renderJson(value: JsonValue, style: JsonStyle = LOSSLESS): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return style.string(value);
  if (value instanceof JsonNumber) return style.number(value.text);
  if (Array.isArray(value)) return `[${value.map((item) => renderJson(item, style)).join(",")}]`;
  const members: string[] = [];
  for (const [key, member] of style.entries(value)) members.push(`${style.string(key)}:${renderJson(member, style)}`);
  return `{${members.join(",")}}`;
}
