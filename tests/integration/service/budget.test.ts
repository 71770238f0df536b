import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Publishable } from "@/lib/domain";
import { isAway } from "@/lib/guards/redis-scripts";
import { RUN_LEASE_MS } from "@/lib/timings";
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

const LATE = 2_000;

let budget: BudgetDriver;

beforeAll(async () => {
  budget = await driveBudget();
});
beforeEach(() => budget.reset());
afterAll(() => budget.close());

const job = (calls?: number, dueInMs?: number) => budget.job(calls, dueInMs);
const reserve = (jobs: Publishable[]) => budget.reserve(jobs);
const admit = (given: Publishable, retried?: number, delivery?: number) => budget.admit(given, retried, delivery);

describe("I5: background calls never exceed share + 5 % in any window", () => {
  test("whatever comes whenever, and however late a slot is used", async () => {
    const step = fc.record({
      waitMs: fc.nat(20_000),
      jobs: fc.array(fc.tuple(fc.integer({ min: 1, max: 4 }), fc.oneof(fc.constant(0), fc.nat(70_000))), {
        maxLength: 40,
      }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 3, maxLength: 12 }),
        fc.infiniteStream(fc.nat(LATE)),
        async (steps, late) => {
          await budget.flush();
          const calls: number[] = [];
          for (const { waitMs, jobs } of steps) {
            budget.now += waitMs;
            const given = jobs.map(([n, dueInMs]) => job(n, dueInMs));
            const waits = await reserve(given);
            waits.forEach((wait, i) => {
              expect(wait).toBeGreaterThanOrEqual(given[i]?.dueInMs ?? 0);
              // Due after a window: no slot yet.
              if ((given[i]?.dueInMs ?? 0) > WINDOW) return;
              const at = budget.now + wait + (late.next().value ?? 0);
              for (let n = 0; n < (given[i]?.calls ?? 0); n += 1) calls.push(at);
            });
          }
          expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
        },
      ),
      { numRuns: 30 },
    );
  });

  test("while work waits the whole share is handed out", async () => {
    const waits = await reserve(Array.from({ length: 500 }, () => job()));
    const minutes = (waits.at(-1) ?? 0) / WINDOW;
    expect((500 * 3) / (minutes * LIMIT * SHARE)).toBeGreaterThan(0.99);
  });

  test("there is no burst after a flush", async () => {
    await reserve([job()]);
    budget.now += 600_000;
    await budget.flush();
    const waits = await reserve([job(), job()]);
    expect(waits).toEqual([0, 960]);
  });

  test("repeating a reservation charges once", async () => {
    const given = job();
    const first = await reserve([given]);
    expect(await reserve([given, given])).toEqual([...first, ...first]);
    expect(await reserve([job()])).toEqual([960]);
  });

  test("a job that is due later has its slot at its due time, and the calls until then are others'", async () => {
    const later = job(3, 10_000);
    expect(await reserve([later])).toEqual([10_000]);
    // Ten slots of 960 ms each fit before it.
    const others = await reserve(Array.from({ length: 11 }, () => job()));
    expect(others.at(-2)).toBe(8_640);
    // The eleventh begins before it and flows around it.
    expect(others.at(-1)).toBe(9_600);
    budget.now += 10_000;
    expect(await admit(later)).toMatchObject({ kind: "go", calls: 3, reserved: false });
  });

  test("jobs that are due at one time stand one behind another", async () => {
    expect(await reserve([job(3, 10_000), job(3, 10_000), job(3, 9_500)])).toEqual([10_000, 10_960, 11_920]);
    budget.now += 12_880;
    expect(await reserve([job()])).toEqual([0]);
  });

  test("a slot of later that is not used goes back", async () => {
    const [first, last] = [job(3, 10_000), job(3, 10_000)];
    await reserve([first, last]);
    await budget.guards.giveBackSlots([{ ...last, retried: 0 }], {});
    expect(await reserve([job(3, 10_000)])).toEqual([10_960]);
  });

  test("a job that is due after a window has no slot yet", async () => {
    expect(await reserve([job(3, 600_000)])).toEqual([600_000]);
    expect(await reserve([job()])).toEqual([0]);
  });

  test("jobs that are due later cost the others hardly anything of the share", async () => {
    budget.guards = budget.guardsFor(4000);
    await reserve(Array.from({ length: 100 }, (_, i) => job(3, (i + 1) * 201)));
    const waits = await reserve(Array.from({ length: 400 }, () => job()));
    const minutes = (waits.at(-1) ?? 0) / WINDOW;
    expect((500 * 3) / (minutes * 4000 * SHARE)).toBeGreaterThan(0.95);
  });

  test("a retry of a delivery takes a slot of its own", async () => {
    const given = job();
    await reserve([given]);
    expect(await admit(given, 0)).toMatchObject({ kind: "go", reserved: false });
    budget.now += RUN_LEASE_MS;
    expect(await admit(given, 1)).toMatchObject({ kind: "go", reserved: true });
  });

  test("a slot that is more than two seconds late does not count", async () => {
    const [early, second, third] = [job(), job(), job()];
    await reserve([early, second, third]);
    budget.now += 120_000;
    const answers = [await admit(early), await admit(second), await admit(third)];
    expect(answers.map((a) => a.kind)).toEqual(["go", "defer", "defer"]);
  });

  test("a slot that is ahead is kept, under the next delivery, without a new charge", async () => {
    const [first, second] = [job(), job()];
    await reserve([first, second]);
    expect(await admit(second)).toEqual({
      kind: "defer",
      waitMs: 960,
      reason: "early",
      reserved: false,
      notBeforeMs: 0,
    });
    budget.now += 960;
    expect(await admit(second, 0, 2)).toMatchObject({ kind: "go", reserved: false });
  });

  test("slots that Redis lost do not count", async () => {
    const jobs = Array.from({ length: 20 }, () => job());
    await reserve(jobs);
    await budget.flush();
    const answers = await Promise.all(jobs.map((j) => admit(j)));
    expect(answers.filter((a) => a.kind === "go")).toHaveLength(1);
  });

  test("an unused reservation goes back if it is still the last one, and only then", async () => {
    const [first, second] = [job(), job()];
    await reserve([first]);
    await reserve([second]);
    await budget.guards.giveBackSlots([{ ...first, retried: 0 }], {});
    await budget.guards.giveBackSlots([{ ...second, retried: 0 }], {});
    expect(await reserve([job()])).toEqual([960]);
  });

  test("bulk work gets no slot beyond its horizon", async () => {
    const waits = await budget.guards.reserveSlots(
      Array.from({ length: 200 }, () => job()),
      WINDOW,
    );
    if (isAway(waits)) throw new Error("Redis is away");
    expect(waits).toHaveLength(63);
    expect(Math.max(...waits)).toBeLessThanOrEqual(WINDOW);
  });

  test("a lower limit voids the slots that were cut for another one", async () => {
    const jobs = Array.from({ length: 5 }, () => job());
    await reserve(jobs);
    await budget.guards.observeLimits({
      accountId: "a",
      limit: 60,
      holdMs: 0,
      cooldownMs: 0,
      accountCooldownMs: 0,
      counts: {},
    });
    budget.now += 4 * 960;
    const last = jobs.at(-1) ?? job();
    const first = jobs[0] ?? job();
    expect(await admit(last)).toMatchObject({ kind: "go", reserved: true, limit: 60 });
    expect(await admit(first)).toMatchObject({ kind: "defer", waitMs: 4000, reason: "budget" });
  });

  test("a limit above the configured one changes nothing", async () => {
    await reserve([job()]);
    await budget.guards.observeLimits({
      accountId: "a",
      limit: 4000,
      holdMs: 0,
      cooldownMs: 0,
      accountCooldownMs: 0,
      counts: {},
    });
    expect(await reserve([job()])).toEqual([960]);
  });
});

describe("I6: no run is admitted inside a cooldown or hold", () => {
  test("a client-wide cooldown defers every account to slots behind its end", async () => {
    const [first, second] = [job(), job()];
    await reserve([first, second]);
    await budget.guards.observeLimits({ ...quiet, cooldownMs: 30_000 });
    expect(await admit(first)).toEqual({
      kind: "defer",
      waitMs: 30_000,
      reason: "cooldown",
      reserved: true,
      notBeforeMs: 30_000,
    });
    expect(await admit(second)).toMatchObject({ kind: "defer", waitMs: 30_960, reason: "cooldown" });
  });

  test("an account's cooldown defers this account alone", async () => {
    const [cooling, other] = [job(), job()];
    await budget.guards.observeLimits({ ...quiet, accountId: cooling.accountId, accountCooldownMs: 30_000 });
    expect(await admit(cooling)).toMatchObject({ kind: "defer", waitMs: 30_000, reason: "cooldown", reserved: true });
    expect(await admit(other)).toMatchObject({ kind: "go" });
  });

  test("a hold hands out no slot and honours none", async () => {
    const held = job();
    await reserve([held]);
    await budget.guards.observeLimits({ ...quiet, holdMs: 10_000 });
    expect(await admit(held)).toMatchObject({ kind: "defer", waitMs: 10_000, reason: "hold" });
    expect(await reserve([job()])).toEqual([10_960]);
  });

  test.each(["cooldownMs", "holdMs"])("a shorter %s never shortens a longer one", async (length) => {
    await budget.guards.observeLimits({ ...quiet, [length]: 40_000 });
    await budget.guards.observeLimits({ ...quiet, [length]: 5_000 });
    expect(await reserve([job()])).toEqual([40_000]);
  });

  test("more calls in the middle of a run are free now, or not at all", async () => {
    expect(await budget.callsNow(2)).toBe(2);
    expect(await budget.callsNow(2)).toBe(0);
    budget.now += 640;
    expect(await budget.callsNow(2)).toBe(2);
    budget.now += WINDOW;
    await budget.guards.observeLimits({ ...quiet, holdMs: 10_000 });
    expect(await budget.callsNow(1)).toBe(0);
  });
});
