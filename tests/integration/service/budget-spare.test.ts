import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Publishable } from "@/lib/domain";
import { type BudgetDriver, driveBudget, quiet } from "@/tests/integration/service/drive-budget";

/** A call each 200 ms. */
const LIMIT = 400;
/** What 100 jobs of three calls take. */
const TAIL = 100 * 600;

let budget: BudgetDriver;

beforeAll(async () => {
  budget = await driveBudget();
});
beforeEach(async () => {
  await budget.reset();
  budget.guards = budget.guardsFor(LIMIT);
});
afterAll(() => budget.close());

/** A backlog of 100 jobs, of which the first one's run ends with so many calls left, as soon as others may follow. */
async function backlog(unmade: number): Promise<Publishable[]> {
  const jobs = budget.jobs(100);
  await budget.reserve(jobs);
  const [first = budget.job()] = jobs;
  await budget.release(first, unmade, await begun(first));
  return jobs;
}

/** The time of the slot with which the job begins. */
async function begun(job: Publishable): Promise<number> {
  const admitted = await budget.admit(job);
  if (admitted.kind !== "go") throw new Error(`Not admitted: ${admitted.kind}`);
  expect(admitted.calls).toBe(3);
  return admitted.slotAt;
}

describe("I5: calls that a run held and did not make are not lost", () => {
  test("whoever comes next takes them at once, and once", async () => {
    await backlog(3);
    expect(await budget.reserve(budget.jobs(2))).toEqual([0, TAIL]);
  });

  test("what is too little for a job waits for more", async () => {
    await backlog(2);
    expect(await budget.reserve([budget.job()])).toEqual([TAIL]);
    expect(await budget.callsNow(2)).toBe(2);
    expect(await budget.callsNow(1)).toBe(0);
  });

  test("a job that is due later does not take them, nor the place of those that wait", async () => {
    await backlog(3);
    expect(await budget.reserve(budget.jobs(3, 3, 10_000))).toEqual([TAIL, TAIL + 600, TAIL + 1_200]);
    expect(await budget.reserve([budget.job()])).toEqual([0]);
  });

  test("bulk work does not take them", async () => {
    await backlog(3);
    expect(await budget.guards.reserveSlots([budget.job()], TAIL - 1)).toEqual([]);
    expect(await budget.guards.reserveSlots([budget.job()], TAIL)).toEqual([TAIL]);
  });

  test("only the holder of the lock gives them back, and once", async () => {
    const [first = budget.job(), second = budget.job()] = await backlog(0);
    await budget.release(first, 3, budget.now);
    budget.now += 600;
    const slotAt = await begun(second);
    await budget.release(second, 3, slotAt, "token-of-another");
    expect(await budget.reserve([budget.job()])).toEqual([TAIL - 600]);
    await budget.release(second, 3, slotAt);
    expect(await budget.reserve([budget.job()])).toEqual([0]);
  });

  test.each([
    [2_000, 0],
    [2_001, TAIL - 600 - 2_001],
  ])("none comes back of a slot that is more than two seconds ago: %i ms", async (ago, wait) => {
    const [, second = budget.job()] = await backlog(0);
    budget.now += 600;
    const slotAt = await begun(second);
    budget.now = slotAt + ago;
    await budget.release(second, 3, slotAt);
    expect(await budget.reserve([budget.job()])).toEqual([wait]);
  });

  test("whoever takes them holds calls of the slot that they came from, and leaves such", async () => {
    const begin = budget.now;
    await backlog(3);
    budget.now += 1_500;
    const [next = budget.job()] = budget.jobs(1);
    expect(await budget.reserve([next])).toEqual([0]);
    const slotAt = await begun(next);
    expect(slotAt).toBe(begin);
    await budget.release(next, 3, slotAt);
    budget.now = begin + 2_000;
    expect(await budget.callsNow(1)).toBe(1);
    budget.now += 1;
    expect(await budget.callsNow(1)).toBe(0);
  });

  test("more calls in the middle of a run say of which slot they are", async () => {
    const begin = budget.now;
    await backlog(3);
    budget.now += 1_500;
    expect(await budget.guards.reserveCallsNow(2, { spares: true })).toEqual({ calls: 2, slotAt: begin });
    expect(await budget.guards.reserveCallsNow(1, { spares: false })).toEqual({ calls: 0, slotAt: 0 });
  });

  test("a slot of spare calls that is not used gives them back", async () => {
    await backlog(3);
    const taken = budget.job();
    await budget.reserve([taken]);
    await budget.guards.giveBackSlots([{ ...taken, retried: 0 }], {});
    expect(await budget.reserve(budget.jobs(2))).toEqual([0, TAIL]);
  });

  test("what came back of slots of the last two seconds is there, and no more", async () => {
    const jobs = await backlog(3);
    for (const job of jobs.slice(1, 20)) {
      budget.now += 600;
      await budget.release(job, 3, await begun(job));
    }
    const waits = await budget.reserve(budget.jobs(20, 1));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(4 * 3);
  });

  test("they are not handed out inside a hold", async () => {
    await backlog(3);
    await budget.guards.observeLimits({ ...quiet, holdMs: 10_000 });
    expect(await budget.callsNow(3)).toBe(0);
  });

  test.each(["by an answer", "by another deployment"])("they are gone once the limit has changed %s", async (by) => {
    await backlog(3);
    if (by === "by an answer") await budget.guards.observeLimits({ ...quiet, limit: 200 });
    else budget.guards = budget.guardsFor(200);
    const waits = await budget.reserve(budget.jobs(10));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(0);
  });
});
