import fc from "fast-check";
import { expect, test } from "vitest";
import { parseWebhookJson, renderJson, toPlain } from "@/lib/webhook/json-text";
import { jsonObjectText } from "./arbitrary-json";
import { jsonValue } from "./json-value";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const nested = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;

test("numbers keep the text that they came as", () => {
  const text = '{"n":[5.0,1e16,12345678901234567890,-0,-0.0,1E+2,0.10]}';
  expect(renderJson(jsonValue(text))).toBe(text);
});

test("a value written again says the same, with every key in its place", () => {
  fc.assert(
    fc.property(jsonObjectText(), (text) => {
      const written = renderJson(jsonValue(text));
      expect(JSON.parse(written)).toEqual(JSON.parse(text));
      expect(renderJson(jsonValue(written))).toBe(written);
    }),
  );
});

test.each([
  ['{"a":1,"a":2}', '{"a":2}'],
  ['{"a":[],"a":{}}', '{"a":{}}'],
  ['{"a":["x"],"a":{"0":"x"}}', '{"a":{"0":"x"}}'],
  ['{"a":1,"b":2,"\\u0061":3}', '{"a":3,"b":2}'],
])("of a repeated key the last value stays: %s", (text, kept) => {
  expect(renderJson(jsonValue(text))).toBe(kept);
});

test("hostile keys are keys like any other and reach no prototype", () => {
  const value = jsonValue('{"__proto__":{"polluted":true},"constructor":1,"10":2,"9":3}');
  expect([...value.keys()]).toEqual(["__proto__", "constructor", "10", "9"]);
  const plain = toPlain(value);
  expect(Object.getPrototypeOf(plain)).toBeNull();
  expect(Object.keys(Object(plain))).toContain("__proto__");
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
});

test("a lone surrogate stays as it came", () => {
  expect(renderJson(jsonValue('{"a":"\\ud83d","b":"\\ude42\\ud83d"}'))).toBe('{"a":"\\ud83d","b":"\\ude42\\ud83d"}');
});

test.each([
  ["empty", ""],
  ["blank", " \n"],
  ["garbage", "webhook=1"],
  ["cut", '{"a":'],
  ["NaN", '{"a":NaN}'],
  ["Infinity", '{"a":-Infinity}'],
  ["a trailing comma", '{"a":1,}'],
  ["single quotes", "{'a':1}"],
  ["a comment", '{"a":1}//'],
  ["a second value", '{"a":1}{}'],
  ["a leading zero", '{"a":01}'],
  ["a raw line end in a string", '{"a":"\n"}'],
  ["a bad escape", '{"a":"\\x41"}'],
  ["a byte order mark", "\ufeff{}"],
  ["brackets that never close", "[".repeat(262_144)],
])("%s is not JSON", (_, text) => {
  expect(parseWebhookJson(bytesOf(text))).toEqual({ kind: "bad", reason: "not JSON" });
});

test.each(["null", "[]", "0", '"a"', "true", "[{}]"])("%s is not an object (B13)", (text) => {
  expect(parseWebhookJson(bytesOf(text))).toEqual({ kind: "bad", reason: "not an object" });
});

test.each([
  ["a stray continuation byte", [0x7b, 0x80, 0x7d]],
  ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
  ["a cut character", [0x22, 0xf0, 0x9f, 0x99]],
])("%s is not UTF-8 and is not replaced", (_, bytes) => {
  expect(parseWebhookJson(Uint8Array.from(bytes))).toEqual({ kind: "bad", reason: "not UTF-8" });
});

test("a hundred levels are read, one more is refused, and no depth overflows the stack", () => {
  expect(parseWebhookJson(bytesOf(nested(100))).kind).toBe("ok");
  for (const depth of [101, 40_000]) {
    expect(parseWebhookJson(bytesOf(nested(depth)))).toEqual({ kind: "bad", reason: "nested too deeply" });
  }
  const inArrays = `{"a":${"[".repeat(130_000)}${"]".repeat(130_000)}}`;
  expect(parseWebhookJson(bytesOf(inArrays))).toEqual({ kind: "bad", reason: "nested too deeply" });
});

test("no bytes make it throw", () => {
  const bytes = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: "binary" }).map(bytesOf));
  fc.assert(
    fc.property(bytes, (given) => {
      expect(["ok", "bad"]).toContain(parseWebhookJson(given).kind);
    }),
  );
});

test("exactly the objects that JSON.parse reads are read", () => {
  const spoilt = fc
    .tuple(jsonObjectText(), fc.nat(), fc.constantFrom("", ",", "0", '"', "}", "\\", "\0"))
    .map(([text, at, put]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + put + text.slice(place + 1);
    });
  fc.assert(
    fc.property(fc.oneof(jsonObjectText(), spoilt), (text) => {
      const read = parseWebhookJson(bytesOf(text));
      const expected = native(new TextDecoder().decode(bytesOf(text)));
      expect(read.kind).toBe(expected === undefined ? "bad" : "ok");
    }),
  );
});

/** The object that `JSON.parse` reads, if it reads one. */
function native(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
