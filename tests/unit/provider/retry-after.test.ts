import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { retryAfter } from "@/lib/provider/retry-after";
import { COOLDOWN, NOW } from "@/tests/unit/provider/fake-server";

const wait = (sources: { retryAfter?: string; reset?: string; text?: string }) =>
  retryAfter({ retryAfter: undefined, reset: undefined, text: "", ...sources }, COOLDOWN, () => NOW);

describe("B61: Retry-After is read as seconds or as a date, and is never NaN, negative or above the cap", () => {
  test.each([
    ["7", 7_000],
    [" 7 ", 7_000],
    ["7.5", 7_500],
    ["0", 1_000],
    ["0.2", 1_000],
    ["86400", 900_000],
    ["Sun, 29 Nov 2026 12:01:30 GMT", 90_000],
    ["Sunday, 29-Nov-26 12:01:30 GMT", 90_000],
    ["Sun Nov 29 12:01:30 2026", 90_000],
    ["Sun, 29 Nov 2026 11:00:00 GMT", 1_000],
    ["Mon, 29 Nov 2027 12:00:00 GMT", 900_000],
  ])("%j asks for %d ms", (header, ms) => expect(wait({ retryAfter: header })).toEqual({ ms }));

  test.each(["soon", "-5", "NaN", "", "Sun, the 29th", "1790000000", "7, 8", "1e3"])(
    "%j cannot be read: the reset header decides, and the reader is told",
    (header) => {
      const read = wait({ retryAfter: header, reset: "12" });
      expect(read.ms).toBe(12_000);
      expect(read.warning).toContain("Retry-After");
    },
  );
});

describe("B64: the reset header is seconds from now; an epoch in it falls back", () => {
  test("seconds", () => expect(wait({ reset: "7" })).toEqual({ ms: 7_000 }));
  test("an epoch is not slept for", () => {
    const read = wait({ reset: "1790000000" });
    expect(read.ms).toBe(60_000);
    expect(read.warning).toContain("1790000000");
  });
  test("an epoch falls back to the number in the text first", () => {
    expect(wait({ reset: "1790000000", text: "Expected available in 9 seconds." }).ms).toBe(9_000);
  });
  test("no header: the number in the text, else the default", () => {
    expect(wait({ text: "Request was throttled. Expected available in 7 seconds." })).toEqual({ ms: 7_000 });
    expect(wait({ text: "Expected available in 1 second." })).toEqual({ ms: 1_000 });
    expect(wait({ text: "Slow down." })).toEqual({ ms: 60_000 });
  });
});

test("B66: whatever the headers say, there is a wait within [1 s, max]", () => {
  const anything = fc.option(fc.oneof(fc.string(), fc.double().map(String), fc.date().map(String)), { nil: undefined });
  fc.assert(
    fc.property(anything, anything, fc.string(), (retryAfterHeader, reset, text) => {
      const { ms } = retryAfter({ retryAfter: retryAfterHeader, reset, text }, COOLDOWN, () => NOW);
      expect(ms).toBeGreaterThanOrEqual(1_000);
      expect(ms).toBeLessThanOrEqual(900_000);
    }),
  );
});
