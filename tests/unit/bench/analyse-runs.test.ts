import { expect, test } from "vitest";
import { analyseRuns, percentile, recoveryMs } from "@/bench/report/analyse-runs";
import type { Change, RunRecord } from "@/bench/world/recorder";

const END = 9_000;
const key = { workType: "holdings", accountId: "acct-0000" } as const;
const change = (atMs: number, answeredMs = atMs): Change => ({ ...key, atMs, answeredMs });
const run = (beganMs: number, storedMs: number | null): RunRecord => ({ ...key, beganMs, storedMs });

test("a run that began before a change does not cover it, however late it was stored", () => {
  const { freshnessMs } = analyseRuns([change(100), change(150)], [run(120, 900), run(200, 300)], 0, END);
  expect(freshnessMs).toEqual([200, 150]);
});

test("a change that no stored run followed is never fresh", () => {
  const { freshnessMs } = analyseRuns([change(100)], [run(90, 300), run(120, null)], 0, END);
  expect(freshnessMs).toEqual([Number.POSITIVE_INFINITY]);
});

test("a run is wasted if no event came since the one before began, and its calls were not needed", () => {
  const figures = analyseRuns([change(10)], [run(20, 30), run(40, 50)], 0, END);
  expect([figures.stored, figures.wasted, figures.callsNeeded]).toEqual([2, 1, 3]);
});

test("a run is not wasted if its event came after the one before began, though the change was earlier", () => {
  expect(analyseRuns([change(10), change(15, 25)], [run(20, 30), run(40, 50)], 0, END).wasted).toBe(0);
});

test("waiting is what a change could have begun earlier, without overlaps and without the spacing", () => {
  const changes = [change(100), change(150), change(1_000)];
  const runs = [run(200, 300), run(1_500, 1_600)];
  expect(analyseRuns(changes, runs, 0, END).waiting).toEqual([
    [100, 200],
    [1_000, 1_500],
  ]);
  expect(analyseRuns(changes, runs, 1_200, END).waiting).toEqual([
    [100, 200],
    [1_400, 1_500],
  ]);
});

test("a change that no run came for waits until the end", () => {
  expect(analyseRuns([change(100)], [run(90, 95)], 0, END).waiting).toEqual([[100, END]]);
});

test("recovery ends when the keys whose runs were cut off are stored again, and not before", () => {
  const other = { ...run(1_050, 1_080), accountId: "acct-0001" };
  expect(recoveryMs(1_000, [run(900, null), other, run(1_200, 1_500)])).toBe(500);
  expect(recoveryMs(1_000, [run(900, null), other])).toBeNull();
});

test("recovery does not wait for a run that had failed and was stored before the fault", () => {
  const other = { ...run(1_050, 1_080), accountId: "acct-0001" };
  expect(recoveryMs(1_000, [run(700, null), run(800, 900), other])).toBe(80);
});

test.each([
  [[], 0.5, null],
  [[3, 1, 2], 0.5, 2],
  [[1, 2, Number.POSITIVE_INFINITY], 0.99, Number.POSITIVE_INFINITY],
])("percentiles: of %j below %d lies %d", (values, part, expected) => {
  expect(percentile(values, part)).toBe(expected);
});
