import { expect, test } from "vitest";
import { allowedCalls, leastTimeMs } from "@/bench/world/allowance";

const MINUTE = 60_000;
const lowered = [
  { fromMs: 0, limit: 240, users: 0 },
  { fromMs: MINUTE, limit: 60, users: 0 },
  { fromMs: 3 * MINUTE, limit: 240, users: 0 },
];

test("what may be called follows the limit", () => {
  expect(allowedCalls(lowered, 0.75, 0, MINUTE)).toBe(180);
  expect(allowedCalls(lowered, 0.75, MINUTE / 2, 4 * MINUTE)).toBe(90 + 2 * 45 + 180);
});

test("users come first: what they leave bounds the share", () => {
  expect(allowedCalls([{ fromMs: 0, limit: 240, users: 30 }], 0.75, 0, MINUTE)).toBe(180);
  expect(allowedCalls([{ fromMs: 0, limit: 240, users: 100 }], 0.75, 0, MINUTE)).toBe(140);
});

test.each([0, 90, 180, 200, 270, 271, 1_000])(
  "the least time for %d calls is the time in which they are allowed",
  (calls) => {
    expect(allowedCalls(lowered, 0.75, 0, leastTimeMs(lowered, 0.75, 0, calls))).toBeCloseTo(calls, 6);
  },
);
