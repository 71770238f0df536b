import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalText } from "@/lib/webhook/canonical-text";
import { jsonObjectText } from "./arbitrary-json";
import { jsonValue } from "./json-value";
import { VECTOR_A, VECTOR_B } from "./signature-vectors";

const canonicalOf = (text: string) => canonicalText(jsonValue(text));

test.each([
  ["5.0", "5.0"],
  ["5", "5"],
  ["-0", "0"],
  ["-0.0", "-0.0"],
  ["0e5", "0.0"],
  ["1e16", "1e+16"],
  ["9999999999999998.0", "9999999999999998.0"],
  ["1e15", "1000000000000000.0"],
  ["0.0001", "0.0001"],
  ["0.00001", "1e-05"],
  ["1e-7", "1e-07"],
  ["1.5e300", "1.5e+300"],
  ["100.0", "100.0"],
  ["123.4560", "123.456"],
  ["5e-324", "5e-324"],
  ["1e400", "Infinity"],
  ["-1e400", "-Infinity"],
  ["123456789012345678901234567890", "123456789012345678901234567890"],
])("the number %s is written as Python writes it: %s", (given, expected) => {
  expect(canonicalOf(`{"n":${given}}`)).toBe(`{"n":${expected}}`);
});

test("keys are sorted by code point at every depth, integer-like ones too", () => {
  const given =
    '{"😀":1,"ﬀ":2,"é":3,"9":4,"10":5,"Z":6,"a":{"y":1,"x":{"d":1,"c":2}},"a\\ud83d\\ude00":7,"a\\ud83d":8,"a":9}';
  expect(canonicalOf(given)).toBe(
    '{"10":5,"9":4,"Z":6,"a":9,"a\\ud83d":8,"a\\ud83d\\ude00":7,"\\u00e9":3,"\\ufb00":2,"\\ud83d\\ude00":1}',
  );
});

test.each([
  ["a pair after it", "\\ud85b\\ud9b8\\udf99", "\\ud85b\\n"],
  ["another character after it", "\\ud85bz", "\\ud85ba"],
  ["a pair that it is part of", "\\ud85b\\udc00", "\\ud85bz"],
  ["nothing after it", "\\ud85ba", "\\ud85b"],
  ["a lone second half after it", "\\udc00b", "\\udc00a"],
])("keys that begin with the same lone half of a pair are sorted by what follows: %s", (_, greater, smaller) => {
  const expected = `{"${smaller}":2,"${greater}":1}`;
  expect(canonicalOf(`{"${greater}":1,"${smaller}":2}`)).toBe(expected);
  expect(canonicalOf(expected)).toBe(expected);
});

test("everything outside printable ASCII is escaped in lower case, DEL included, and the slash is not", () => {
  expect(canonicalOf('{"s":"\\u007f/\\u0080\\u2028é日😀\\b\\f\\n\\r\\t\\u0000\\u001F\\"\\\\"}')).toBe(
    '{"s":"\\u007f/\\u0080\\u2028\\u00e9\\u65e5\\ud83d\\ude00\\b\\f\\n\\r\\t\\u0000\\u001f\\"\\\\"}',
  );
});

test.each([
  ["A", VECTOR_A.wire, 600, "0e7da921b59aa0558d7123e840599c59e6cfe8c066574e6c3f7cdbfdd8000efb"],
  ["B", VECTOR_B.wire, 610, "a84f5f6b57427cb8277f4441bc5e20efaac90646598dfa97658a6ca213329fcf"],
])("the canonical text of vector %s is the recorded one", (_, wire, length, digest) => {
  const canonical = canonicalOf(wire);
  expect(canonical).toHaveLength(length);
  expect(createHash("sha256").update(canonical).digest("hex")).toBe(digest);
});

test("a canonical text is its own canonical text", () => {
  fc.assert(
    fc.property(jsonObjectText(), (text) => {
      const canonical = canonicalOf(text);
      // Only Python reads its own Infinity back.
      fc.pre(!canonical.includes("Infinity"));
      expect(canonicalOf(canonical)).toBe(canonical);
    }),
  );
});

type Case = { wire: string; canonical: string };
const recorded: Case[] = JSON.parse(readFileSync("tests/fixtures/python-canonical.json", "utf8"));

test("Python's own texts, recorded, are matched", () => {
  expect(recorded.length).toBeGreaterThan(100);
  for (const { wire, canonical } of recorded) expect(canonicalOf(wire)).toBe(canonical);
});
