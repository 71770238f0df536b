import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Publishable } from "@/lib/domain";
import {
  type BudgetDriver,
  busiestWindow,
  CEILING,
  driveBudget,
  LIMIT,
  quiet,
  SHARE,
  WINDOW,
} from "@/tests/integration/service/drive-budget";

let budget: BudgetDriver;

beforeAll(async () => {
  budget = await driveBudget();
});
beforeEach(() => budget.reset());
afterAll(() => budget.close());

/** A backlog of 100 slots, and one run of it that ends with this many calls left. */
async function backlog(unmade: number): Promise<Publishable> {
  const [first = budget.job(), ...others] = budget.jobs(100);
  await budget.reserve([first, ...others]);
  expect(await budget.admit(first)).toMatchObject({ kind: "go", calls: 3 });
  await budget.release(first, unmade);
  return first;
}
const TAIL = 100 * 960;

describe("I5: calls that a run held and did not make are not lost", () => {
  test("whoever reserves next takes them at once, and once", async () => {
    await backlog(3);
    expect(await budget.reserve(budget.jobs(2))).toEqual([0, TAIL]);
  });

  test("what is too little for a job waits for more", async () => {
    await backlog(2);
    expect(await budget.reserve([budget.job()])).toEqual([TAIL]);
    expect(await budget.guards.reserveCallsNow(2)).toBe(2);
    expect(await budget.guards.reserveCallsNow(1)).toBe(0);
  });

  test("only the holder of the lock gives them back, and once", async () => {
    const first = await backlog(0);
    await budget.release(first, 3);
    expect(await budget.reserve([budget.job()])).toEqual([TAIL]);
    const [other = budget.job()] = [budget.job()];
    budget.now += 960;
    await budget.admit(other);
    await budget.release(other, 3, "token-of-another");
    expect(await budget.reserve([budget.job()])).not.toEqual([0]);
  });

  test("a slot of spare calls that is not used gives them back", async () => {
    await backlog(3);
    const taken = budget.job();
    await budget.reserve([taken]);
    await budget.guards.giveBackSlots([{ ...taken, retried: 0 }], {});
    expect(await budget.reserve(budget.jobs(2))).toEqual([0, TAIL]);
  });

  test("they are handed out neither inside a hold nor after the limit has changed", async () => {
    await backlog(3);
    await budget.guards.observeLimits({ ...quiet, holdMs: 10_000 });
    expect(await budget.reserve([budget.job()])).toEqual([TAIL]);
    await budget.guards.observeLimits({ ...quiet, limit: 100 });
    expect(await budget.guards.reserveCallsNow(3)).toBe(0);
  });

  test("a storm of runs that fail at their first call leaves to the others what it did not use", async () => {
    // 250 jobs a minute, four in five of which make one call of three. While jobs come, what is left is taken; slots that
    // are out stay where they are.
    const [jobs, everyMs] = [1_000, 240];
    const start = budget.now;
    const { calls, done } = await storm(
      Array.from({ length: jobs }, (_, i) => (i % 5 === 0 ? 0 : 2)),
      everyMs,
    );
    expect(done).toBe(jobs);
    expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
    const made = calls.filter((at) => at < start + jobs * everyMs).length;
    expect(made / ((jobs * everyMs * LIMIT * SHARE) / WINDOW)).toBeGreaterThan(0.7);
  });

  test("and nothing passes the ceiling, whoever fails whenever", async () => {
    const unmade = fc.array(fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(3)), {
      minLength: 100,
      maxLength: 250,
    });
    await fc.assert(
      fc.asyncProperty(unmade, fc.integer({ min: 50, max: 900 }), async (all, everyMs) => {
        await budget.flush();
        const { calls } = await storm(all, everyMs);
        expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
      }),
      { numRuns: 20 },
    );
  });
});

/** A job each `everyMs`, delivered within two seconds after its slot; its run ends a second later with calls left. */
async function storm(unmade: number[], everyMs: number): Promise<{ calls: number[]; done: number }> {
  type Move = { at: number; run: () => Promise<void> };
  const start = budget.now;
  const moves: Move[] = [];
  const calls: number[] = [];
  let done = 0;
  const later = (ms: number, run: Move["run"]) => moves.push({ at: budget.now + ms, run });
  const deliver = (job: Publishable, left: number, wait: number) =>
    later(Math.ceil(wait / 1000) * 1000 + ((moves.length * 37) % 1000), async () => {
      const admitted = await budget.admit(job);
      if (admitted.kind === "defer") {
        deliver({ ...job, delivery: job.delivery + 1 }, left, admitted.waitMs);
      } else {
        for (let i = left; i < 3; i += 1) calls.push(budget.now);
        later(1_000, async () => {
          done += 1;
          await budget.release(job, left);
        });
      }
    });
  unmade.forEach((left, i) => {
    moves.push({
      at: start + i * everyMs,
      run: async () => {
        const job = budget.job();
        const [wait = 0] = await budget.reserve([job]);
        deliver(job, left, wait);
      },
    });
  });
  for (;;) {
    moves.sort((a, b) => a.at - b.at);
    const move = moves.shift();
    if (move === undefined) return { calls, done };
    budget.now = Math.max(budget.now, move.at);
    await move.run();
  }
}
