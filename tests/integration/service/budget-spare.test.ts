import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Publishable } from "@/lib/domain";
import {
  type BudgetDriver,
  busiestWindow,
  driveBudget,
  positive,
  quiet,
  SHARE,
  WINDOW,
} from "@/tests/integration/service/drive-budget";

/** A call each 200 ms. */
const LIMIT = 400;
const CEILING = LIMIT * (SHARE + 0.05);
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
    expect(await budget.guards.reserveCallsNow(2)).toBe(2);
    expect(await budget.guards.reserveCallsNow(1)).toBe(0);
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
    expect(await budget.guards.reserveCallsNow(1)).toBe(1);
    budget.now += 1;
    expect(await budget.guards.reserveCallsNow(1)).toBe(0);
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
    expect(await budget.guards.reserveCallsNow(3)).toBe(0);
  });

  test.each(["by an answer", "by another deployment"])("they are gone once the limit has changed %s", async (by) => {
    await backlog(3);
    if (by === "by an answer") await budget.guards.observeLimits({ ...quiet, limit: 200 });
    else budget.guards = budget.guardsFor(200);
    const waits = await budget.reserve(budget.jobs(10));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(0);
  });

  test("a storm of runs that fail at their first call leaves to the others what it did not use", async () => {
    // 2,000 jobs a minute, four in five of which make one call of three: 0.47 of the share. What is left is taken while it
    // counts, and left again; slots
    // that are out stay where they are.
    const [jobs, everyMs, limit] = [1_000, 30, 1_200];
    budget.guards = budget.guardsFor(limit);
    const start = budget.now;
    const failing = Array.from({ length: jobs }, (_, i) => ({ left: i % 5 === 0 ? 0 : 2 }));
    const { calls, done } = await storm(failing, everyMs, 500);
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
      const { calls } = await storm(jobs, WINDOW / limit / 2, runMs, (delivery) => (delivery < limit ? 1_900 : 0));
      expect(busiestWindow(calls)).toBeLessThanOrEqual(limit * (SHARE + 0.05));
    },
  );

  test("nothing passes the ceiling when what came back at the last moment is made at the last moment", async () => {
    // Prompt failures, each of which ends two seconds after its slot; then deliveries come two seconds late, then in time.
    for (const from of [8, 24, 40]) {
      await budget.flush();
      budget.now += 10 * WINDOW;
      const jobs = Array.from({ length: 250 }, (_, i) => ({ left: i < from ? 2 + (i % 2) : 0 }));
      const { calls } = await storm(jobs, 150, 1_990, (delivery) =>
        delivery >= from && delivery < from + 12 ? 2_000 : 0,
      );
      expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
    }
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
        const { calls } = await storm(jobs, everyMs, runMs, (delivery) => late[delivery % late.length] ?? 0);
        expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
      }),
      { numRuns: 6 },
    );
  });
});

type Given = { left: number; dueInMs?: number };

/** A little after the whole second that QStash counts in. */
const asQStash = (delivery: number, wait: number) => Math.ceil(wait / 1000) * 1000 - wait + ((delivery * 37) % 400);

/** A job each `everyMs`, delivered so long after its slot; its run ends after `runMs`, with calls left. */
async function storm(
  jobs: Given[],
  everyMs: number,
  runMs: number,
  lateOf: (delivery: number, wait: number) => number = asQStash,
): Promise<{ calls: number[]; done: number }> {
  const start = budget.now;
  const calls: number[] = [];
  let [sent, done] = [0, 0];
  const later = createTurns();

  async function come(left: number, dueInMs: number): Promise<void> {
    const job = budget.job(3, dueInMs);
    const [wait = 0] = await budget.reserve([job]);
    send(job, left, wait);
  }
  function send(job: Publishable, left: number, wait: number): void {
    later.add(budget.now + wait + lateOf(sent, wait), () => deliver(job, left));
    sent += 1;
  }
  async function deliver(job: Publishable, left: number): Promise<void> {
    const admitted = await budget.admit(job);
    if (admitted.kind === "held") throw new Error("Two runs of one account");
    if (admitted.kind !== "go") return send({ ...job, delivery: job.delivery + 1 }, left, positive(admitted).waitMs);
    for (let made = left; made < 3; made += 1) calls.push(budget.now);
    later.add(budget.now + runMs, async () => {
      done += 1;
      await budget.release(job, left, admitted.slotAt);
    });
  }
  jobs.forEach(({ left, dueInMs = 0 }, i) => {
    later.add(start + i * everyMs, () => come(left, dueInMs));
  });
  await later.play((at) => {
    budget.now = Math.max(budget.now, at);
  });
  return { calls, done };
}

/** What is to be done when, in the order of time. */
function createTurns() {
  const turns: { at: number; run: () => Promise<void> }[] = [];
  return {
    add(at: number, run: () => Promise<void>): void {
      const i = turns.findLastIndex((turn) => turn.at <= at);
      turns.splice(i + 1, 0, { at, run });
    },
    async play(moveTo: (at: number) => void): Promise<void> {
      for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
        moveTo(turn.at);
        await turn.run();
      }
    },
  };
}
