import { describe, expect, it } from "vitest";
import { type Circumstances, isOk, type Result, resultTable } from "@/sandbox/demo/report";
import { drainLimitMs } from "@/sandbox/demo/watch-jobs";

const result: Result = {
  events: 3_480,
  accepted: 900,
  duplicate: 1_480,
  coalesced: 1_100,
  other: 0,
  non200: 0,
  jobs: 700,
  runs: 700,
  wastedRuns: 0,
  deliveries: 710,
  callsNeeded: 1_800,
  providerCalls: 1_810,
  provider429: 0,
  maxCallsInWindow: 1_700,
  lostUpdates: 0,
  staleAccounts: 0,
  drainSeconds: 5,
  ok: true,
};
const usual: Circumstances = {
  limit: 4_000,
  postedSeconds: 50,
  stormSeconds: 45,
  killed: false,
  notDrained: null,
  culprits: {},
};
const lines = (given: Partial<Circumstances> = {}, changed: Partial<Result> = {}) =>
  resultTable({ ...result, ...changed }, { ...usual, ...given }).split("\n");

describe("the demo's report", () => {
  it("is not ok unless every check is 0 and all was drained", () => {
    expect(isOk(result, true)).toBe(true);
    expect(isOk(result, false)).toBe(false);
    for (const name of ["non200", "lostUpdates", "staleAccounts", "provider429", "wastedRuns"] as const) {
      expect(isOk({ ...result, [name]: 1 }, true), name).toBe(false);
    }
  });

  it("names each check that failed, and with whom", () => {
    expect(lines().filter((line) => line.startsWith("FAILED"))).toEqual([]);
    const failed = lines({ culprits: { lostUpdates: ["acct-0003 holdings"] } }, { lostUpdates: 1 });
    expect(failed.filter((line) => line.startsWith("FAILED"))).toEqual([
      expect.stringMatching(/^FAILED {2}every account's data is what SnapTrade has +lostUpdates 1$/),
    ]);
    expect(failed).toContainEqual(expect.stringMatching(/^ +acct-0003 holdings$/));
  });

  it("says that a demo was not drained as a check of its own, and gives no time of a drain then", () => {
    const failed = lines({ notDrained: { withinSeconds: 600, openKeys: 421 } });
    expect(failed).toContainEqual(expect.stringMatching(/^FAILED +every job ended +not drained within 600 s$/));
    expect(failed).toContainEqual(expect.stringMatching(/^ +421 keys are left out above$/));
    expect(failed.join()).not.toContain("drained after");
    expect(lines()).toContainEqual(expect.stringMatching(/^ok +every job ended$/));
  });

  it("does not take a slow machine's posting for the storm's pace", () => {
    expect(lines()[1]).toMatch(/^posted in +50 s +70 a second$/);
    expect(lines({ postedSeconds: 90 })[1]).toMatch(/90 s +the storm is 45 s long; this machine was busy$/);
    expect(lines({ postedSeconds: 90, killed: true })[1]).toMatch(/the storm is 45 s long; the app was away$/);
  });

  it("fits 100 columns", () => {
    const worst = lines(
      { postedSeconds: 90, notDrained: { withinSeconds: 600, openKeys: 421 } },
      { lostUpdates: 1, staleAccounts: 1, wastedRuns: 1 },
    );
    expect(worst.filter((line) => line.length > 100)).toEqual([]);
  });
});

describe("the time that a drain may take", () => {
  it("follows from the limit and the calls that are due", () => {
    expect(drainLimitMs(0, 250)).toBe(150_000);
    // 1500 calls at three quarters of 250 a minute take eight minutes.
    expect(drainLimitMs(1_500, 250)).toBeGreaterThan(150_000 + 8 * 60_000);
    expect(drainLimitMs(1_500, 4_000)).toBeLessThan(200_000);
  });
});
