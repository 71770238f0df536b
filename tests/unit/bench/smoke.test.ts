import { expect, test } from "vitest";
import type { Row } from "@/bench/report/row";
import { smokeFaults } from "@/bench/report/smoke";

const good = {
  valid: true,
  drained: true,
  non200: 0,
  provider429: 0,
  lostUpdates: 0,
  wastedRuns: 0,
  callsOverNeeded: 1,
  differingKeys: 0,
  deliveriesPerJob: 1,
  shareUsed: 0.96,
  drainOverBound: 1.15,
} as Row;

const plan = { ...good, contestant: "plan", provider429: 9, differingKeys: 2, callsOverNeeded: 2 } as Row;

test("the small storm as it should be has no fault", () => {
  expect(smokeFaults(good, plan)).toEqual([]);
});

test.each([
  [{ drained: false, lostUpdates: null }, ["not drained", "null lost updates"]],
  [{ non200: 1 }, ["1 events refused"]],
  [{ provider429: 1 }, ["1 x 429"]],
  [{ lostUpdates: 1 }, ["1 lost updates"]],
  [{ wastedRuns: 1 }, ["1 wasted runs"]],
  [{ callsOverNeeded: 1.03 }, ["1.03 times the calls needed"]],
  [{ deliveriesPerJob: 1.2 }, ["1.2 deliveries a job"]],
  [{ shareUsed: 0.8 }, ["0.8 of the share used"]],
  [{ drainOverBound: 1.4 }, ["drained in 1.4 times the bound"]],
])("%o is a fault", (over, faults) => {
  expect(smokeFaults({ ...good, ...over }, plan)).toEqual(faults);
});

test("on a busy machine what depends on its time is not judged, and what does not is", () => {
  const late = { valid: false, deliveriesPerJob: 2, shareUsed: 0.5, drainOverBound: 2 };
  expect(smokeFaults({ ...good, ...late }, plan)).toEqual([]);
  expect(smokeFaults({ ...good, ...late, lostUpdates: 1 }, plan)).toEqual(["1 lost updates"]);
});

test("what another contestant does better is a fault", () => {
  expect(smokeFaults(good, { ...plan, callsOverNeeded: 0.9 })).toEqual(["behind plan in callsOverNeeded (1, 0.9)"]);
});
