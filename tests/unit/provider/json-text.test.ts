import { describe, expect, test } from "vitest";
import { parseProviderJson, toJsonText } from "@/lib/provider/json-text";

function roundTrip(text: string): string {
  const parsed = parseProviderJson(text);
  return parsed.ok ? toJsonText(parsed.json) : `unreadable: ${parsed.reason}`;
}

describe("the text of an answer survives", () => {
  test.each(["0.123456789012345678", "1e-8", "100.0", "12.50", "-0", "123456789012345678901234567890"])(
    "the number %s keeps its spelling",
    (number) => expect(roundTrip(`{"units":${number}}`)).toBe(`{"units":${number}}`),
  );

  test("keys named like a prototype, escapes and other alphabets stay", () => {
    const text = '{"__proto__":1,"a":"quote\\" back\\\\ \\n é 日本 🚀"}';
    expect(roundTrip(text)).toBe(text);
  });
});

describe("what Postgres cannot store does not get that far", () => {
  test.each([
    ['"a\\u0000b"', "a\ufffdb"],
    ['"half \\ud83d pair"', "half \ufffd pair"],
    ['"half \\udE80 pair"', "half \ufffd pair"],
    ['"\\ud83d\\ud83d\\ude80"', "\ufffd🚀"],
    ['"whole \\ud83d\\ude80 pair"', "whole 🚀 pair"],
    ['"a backslash, then u0000: \\\\u0000"', "a backslash, then u0000: \\u0000"],
  ])("%s", (json, text) => expect(parseProviderJson(json)).toEqual({ ok: true, json: text }));

  test("a number too large for numeric makes the text unreadable", () => {
    expect(roundTrip('{"raw":1e999999}')).toMatch(/^unreadable: .*1e999999/);
  });

  test.each(["", "{", '{"a":1', "[1,]", "<html>", "NaN", '{"a":1}x', '{"a":1,"a":2}', "[".repeat(100_000)])(
    "%.20j is unreadable, not an exception",
    (text) => expect(roundTrip(text)).toMatch(/^unreadable: /),
  );
});

describe("nesting", () => {
  const nested = (open: string, close: string, times: number) => `{"a":${open.repeat(times)}1${close.repeat(times)}}`;

  test.each([
    ["[", "]"],
    ['{"a":', "}"],
  ])(
    "of %s a hundred levels are read and written again, one more is unreadable, and no depth throws",
    (open, close) => {
      expect(roundTrip(nested(open, close, 99))).toBe(nested(open, close, 99));
      for (const times of [100, 5_000, 6_500, 7_000, 50_000]) {
        expect(roundTrip(nested(open, close, times))).toBe("unreadable: JSON is nested too deep");
      }
    },
  );

  test("brackets inside strings are no nesting", () => {
    const text = `{"a":"\\"${"[{".repeat(200)}\\\\","b":[]}`;
    expect(roundTrip(text)).toBe(text);
  });
});
