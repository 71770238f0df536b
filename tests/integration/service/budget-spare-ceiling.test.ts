import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Publishable } from "@/lib/domain";
import { storm } from "@/tests/integration/service/budget-storm";
import { type BudgetDriver, busiestWindow, driveBudget, SHARE, WINDOW } from "@/tests/integration/service/drive-budget";

/** A call each 200 ms. */
const LIMIT = 400;
const CEILING = LIMIT * (SHARE + 0.05);

let budget: BudgetDriver;

beforeAll(async () => {
  budget = await driveBudget();
});
beforeEach(async () => {
  await budget.reset();
  budget.guards = budget.guardsFor(LIMIT);
});
afterAll(() => budget.close());

describe("I5: calls that come back and are made by others", () => {
  test("a storm of runs that fail at their first call leaves to the others what it did not use", async () => {
    // 2,000 jobs a minute, four in five of which make one call of three: 0.47 of the share. What is left is taken while it
    // counts, and left again; slots that are out stay where they are.
    const [jobs, everyMs, limit] = [1_000, 30, 1_200];
    budget.guards = budget.guardsFor(limit);
    const start = budget.now;
    const failing = Array.from({ length: jobs }, (_, i) => ({ left: i % 5 === 0 ? 0 : 2 }));
    const { calls, done } = await storm(budget, failing, everyMs, 500);
    expect(done).toBe(jobs);
    expect(busiestWindow(calls)).toBeLessThanOrEqual(limit * (SHARE + 0.05));
    const made = calls.filter((at) => at < start + jobs * everyMs).length;
    expect(made / ((jobs * everyMs * limit * SHARE) / WINDOW)).toBeGreaterThan(0.6);
  });

  test.each([
    [250, 100],
    [LIMIT, 100],
    [LIMIT, 1_900],
  ])(
    "nothing passes the ceiling at %i when all fail and come late, and then none does, runs of %i ms",
    async (limit, runMs) => {
      budget.guards = budget.guardsFor(limit);
      const jobs = Array.from({ length: limit * 3 }, (_, i) => ({ left: i < limit ? 2 : 0 }));
      const { calls } = await storm(budget, jobs, WINDOW / limit / 2, runMs, (delivery) =>
        delivery < limit ? 1_900 : 0,
      );
      expect(busiestWindow(calls)).toBeLessThanOrEqual(limit * (SHARE + 0.05));
    },
  );

  test.each([60, 100, 150])("at %i calls a minute nothing passes the ceiling by more than one slot", async (limit) => {
    budget.guards = budget.guardsFor(limit);
    for (const lateMs of [0, 1_900]) {
      await budget.flush();
      budget.now += 10 * WINDOW;
      const jobs = Array.from({ length: limit * 2 }, (_, i) => ({
        left: i % 3 === 0 ? 2 : 0,
        dueInMs: (i % 5) * 7_000,
      }));
      const { calls } = await storm(budget, jobs, WINDOW / limit, 500, (delivery) => (delivery < limit ? lateMs : 0));
      expect(busiestWindow(calls)).toBeLessThanOrEqual(limit * (SHARE + 0.05) + 4);
    }
  });

  test("nothing passes the ceiling when what came back at the last moment is made at the last moment", async () => {
    // Prompt failures, each of which ends two seconds after its slot; then deliveries come two seconds late, then in time.
    for (const from of [8, 24, 40]) {
      await budget.flush();
      budget.now += 10 * WINDOW;
      const jobs = Array.from({ length: 250 }, (_, i) => ({ left: i < from ? 2 + (i % 2) : 0 }));
      const { calls } = await storm(budget, jobs, 150, 1_990, (delivery) =>
        delivery >= from && delivery < from + 12 ? 2_000 : 0,
      );
      expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
    }
  });

  test("nothing passes the ceiling when calls that came back are made among slots that are too late", async () => {
    budget.guards = budget.guardsFor(250);
    const start = budget.now;
    const jobs = budget.jobs(100);
    await budget.reserve(jobs);
    const made: number[] = [];
    const note = (calls: number) => made.push(...Array<number>(calls).fill(budget.now));
    const deliver = async (job: Publishable | undefined, at: number): Promise<number> => {
      budget.now = start + at;
      const admitted = await budget.admit(job ?? budget.job());
      if (admitted.kind === "go") note(admitted.calls);
      return admitted.kind === "go" ? admitted.slotAt : Number.NaN;
    };
    const [, , , third = budget.job(), fourth = budget.job()] = jobs;
    for (const [job, at, ends] of [
      [third, 2_880, 3_500],
      [fourth, 3_840, 4_300],
    ] as const) {
      const slotAt = await deliver(job, at);
      made.splice(-2);
      budget.now = start + ends;
      await budget.release(job, 2, slotAt);
    }
    budget.now = start + 4_350;
    const [fresh = budget.job()] = budget.jobs(1);
    expect(await budget.reserve([fresh])).toEqual([0]);
    await deliver(fresh, 4_400);
    for (const late of [0, 1, 2]) await deliver(jobs[late], 4_800 + late * 960);
    for (const k of [5, 6, 7]) await deliver(jobs[k], 6_790);
    for (let k = 8; k <= 67; k += 1) await deliver(jobs[k], k * 960);
    expect(busiestWindow(made)).toBeLessThanOrEqual(200);
  });

  test("nothing passes the ceiling, whoever fails and is due whenever", async () => {
    const job = fc.record({
      left: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(3)),
      dueInMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(30_000)),
    });
    const given = [fc.array(job, { minLength: 150, maxLength: 400 }), fc.integer({ min: 60, max: 600 })] as const;
    const late = fc.array(fc.nat(2_000), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(...given, fc.nat(1_900), late, async (jobs, everyMs, runMs, late) => {
        await budget.flush();
        const { calls } = await storm(budget, jobs, everyMs, runMs, (delivery) => late[delivery % late.length] ?? 0);
        expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
      }),
      { numRuns: 6 },
    );
  });
});
