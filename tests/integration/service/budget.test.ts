import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Publishable } from "@/lib/domain";
import { createScriptRunner, isAway } from "@/lib/guards/redis-scripts";
import { createLogger } from "@/lib/log";
import { createGuards, type Guards } from "@/lib/snaptrade-webhook-guards";
import { RUN_LEASE_MS } from "@/lib/timings";
import { type LocalStack, startLocalStack } from "@/tests/support/local-stack";

const LIMIT = 250;
const SHARE = 0.75;
const WINDOW = 60_000;
const LATE = 2_000;

let stack: LocalStack<object>;
let now = 0;
let ids = 0;
let guards: Guards;

function guardsFor(rateLimit: number): Guards {
  const logger = createLogger({ secrets: [], level: "silent" });
  return createGuards({
    settings: {
      keyPrefix: "",
      webhookTtlMs: 86_400_000,
      queuedTtlMs: 1_800_000,
      lockTtlMs: 1_800_000,
      leaseMs: RUN_LEASE_MS,
      rateLimit,
      backgroundShare: SHARE,
      rateWindowMs: WINDOW,
    },
    scripts: createScriptRunner({ url: stack.redis.url, token: stack.redis.token, timeoutMs: 5_000, logger }),
    clock: () => now,
  });
}

beforeAll(async () => {
  stack = await startLocalStack();
});
beforeEach(async () => {
  await stack.redis.flush();
  now = 1_800_000_000_000;
  guards = guardsFor(LIMIT);
});
afterAll(() => stack.close());

function job(calls = 3, dueInMs = 0): Publishable {
  ids += 1;
  const jobId = `00000000-0000-4000-8000-${String(ids).padStart(12, "0")}`;
  return { jobId, workType: "holdings", accountId: `acct-${ids}`, delivery: 1, calls, dueInMs };
}

async function reserve(jobs: Publishable[]): Promise<number[]> {
  const waits = await guards.settleSlots(jobs);
  if (isAway(waits)) throw new Error("Redis is away");
  return waits;
}

function admit(given: Publishable, retried = 0, delivery = given.delivery) {
  const token = `token-${given.jobId}-${delivery}-${retried}`;
  return guards.claimAccountLock({
    job: { ...given, delivery },
    retried,
    token,
    calls: given.calls,
    replace: false,
    counts: {},
  });
}

/** The most calls that any window holds, counted the provider's way: one by one, by arrival. */
function busiestWindow(calls: number[]): number {
  const sorted = [...calls].sort((a, b) => a - b);
  let from = 0;
  return sorted.reduce((most, at, i) => {
    while ((sorted[from] ?? 0) <= at - WINDOW) from += 1;
    return Math.max(most, i - from + 1);
  }, 0);
}

describe("I5: background calls never exceed share + burst in any window", () => {
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
          await stack.redis.flush();
          const calls: number[] = [];
          for (const { waitMs, jobs } of steps) {
            now += waitMs;
            const given = jobs.map(([n, dueInMs]) => job(n, dueInMs));
            const waits = await reserve(given);
            waits.forEach((wait, i) => {
              expect(wait).toBeGreaterThanOrEqual(given[i]?.dueInMs ?? 0);
              // Due after a window: no slot yet.
              if ((given[i]?.dueInMs ?? 0) > WINDOW) return;
              const at = now + wait + (late.next().value ?? 0);
              for (let n = 0; n < (given[i]?.calls ?? 0); n += 1) calls.push(at);
            });
          }
          expect(busiestWindow(calls)).toBeLessThanOrEqual(LIMIT * (SHARE + 0.05));
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
    now += 600_000;
    await stack.redis.flush();
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
    // Ten slots of 960 ms each fit before it; the eleventh comes behind it.
    const others = await reserve(Array.from({ length: 11 }, () => job()));
    expect(others.at(-2)).toBe(8_640);
    expect(others.at(-1)).toBe(10_960);
    now += 10_000;
    expect(await admit(later)).toMatchObject({ kind: "go", calls: 3, reserved: false });
  });

  test("jobs that are due at one time stand one behind another", async () => {
    expect(await reserve([job(3, 10_000), job(3, 10_000), job(3, 9_500)])).toEqual([10_000, 10_960, 11_920]);
    now += 12_880;
    expect(await reserve([job()])).toEqual([0]);
  });

  test("a slot of later that is not used goes back", async () => {
    const [first, last] = [job(3, 10_000), job(3, 10_000)];
    await reserve([first, last]);
    await guards.giveBackSlots([{ ...last, retried: 0 }], {});
    expect(await reserve([job(3, 10_000)])).toEqual([10_960]);
  });

  test("a job that is due after a window has no slot yet", async () => {
    expect(await reserve([job(3, 600_000)])).toEqual([600_000]);
    expect(await reserve([job()])).toEqual([0]);
  });

  test("jobs that are due later cost the others hardly anything of the share", async () => {
    guards = guardsFor(4000);
    await reserve(Array.from({ length: 100 }, (_, i) => job(3, (i + 1) * 201)));
    const waits = await reserve(Array.from({ length: 400 }, () => job()));
    const minutes = (waits.at(-1) ?? 0) / WINDOW;
    expect((500 * 3) / (minutes * 4000 * SHARE)).toBeGreaterThan(0.95);
  });

  test("a retry of a delivery takes a slot of its own", async () => {
    const given = job();
    await reserve([given]);
    expect(await admit(given, 0)).toMatchObject({ kind: "go", reserved: false });
    now += RUN_LEASE_MS;
    expect(await admit(given, 1)).toMatchObject({ kind: "go", reserved: true });
  });

  test("a slot that is more than two seconds late does not count", async () => {
    const [early, second, third] = [job(), job(), job()];
    await reserve([early, second, third]);
    now += 120_000;
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
    now += 960;
    expect(await admit(second, 0, 2)).toMatchObject({ kind: "go", reserved: false });
  });

  test("slots that Redis lost do not count", async () => {
    const jobs = Array.from({ length: 20 }, () => job());
    await reserve(jobs);
    await stack.redis.flush();
    const answers = await Promise.all(jobs.map((j) => admit(j)));
    expect(answers.filter((a) => a.kind === "go")).toHaveLength(1);
  });

  test("an unused reservation goes back if it is still the last one, and only then", async () => {
    const [first, second] = [job(), job()];
    await reserve([first]);
    await reserve([second]);
    await guards.giveBackSlots([{ ...first, retried: 0 }], {});
    await guards.giveBackSlots([{ ...second, retried: 0 }], {});
    expect(await reserve([job()])).toEqual([960]);
  });

  test("bulk work gets no slot beyond its horizon", async () => {
    const waits = await guards.reserveSlots(
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
    await guards.observeLimits({
      accountId: "a",
      limit: 60,
      holdMs: 0,
      cooldownMs: 0,
      accountCooldownMs: 0,
      counts: {},
    });
    now += 4 * 960;
    const last = jobs.at(-1) ?? job();
    const first = jobs[0] ?? job();
    expect(await admit(last)).toMatchObject({ kind: "go", reserved: true, limit: 60 });
    expect(await admit(first)).toMatchObject({ kind: "defer", waitMs: 4000, reason: "budget" });
  });

  test("a limit above the configured one changes nothing", async () => {
    await reserve([job()]);
    await guards.observeLimits({
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
  const quiet = { accountId: "acct-x", holdMs: 0, cooldownMs: 0, accountCooldownMs: 0, counts: {} };

  test("a client-wide cooldown defers every account to slots behind its end", async () => {
    const [first, second] = [job(), job()];
    await reserve([first, second]);
    await guards.observeLimits({ ...quiet, cooldownMs: 30_000 });
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
    await guards.observeLimits({ ...quiet, accountId: cooling.accountId, accountCooldownMs: 30_000 });
    expect(await admit(cooling)).toMatchObject({ kind: "defer", waitMs: 30_000, reason: "cooldown", reserved: true });
    expect(await admit(other)).toMatchObject({ kind: "go" });
  });

  test("a hold hands out no slot and honours none", async () => {
    const held = job();
    await reserve([held]);
    await guards.observeLimits({ ...quiet, holdMs: 10_000 });
    expect(await admit(held)).toMatchObject({ kind: "defer", waitMs: 10_000, reason: "hold" });
    expect(await reserve([job()])).toEqual([10_960]);
  });

  test.each(["cooldownMs", "holdMs"])("a shorter %s never shortens a longer one", async (length) => {
    await guards.observeLimits({ ...quiet, [length]: 40_000 });
    await guards.observeLimits({ ...quiet, [length]: 5_000 });
    expect(await reserve([job()])).toEqual([40_000]);
  });

  test("more calls in the middle of a run are free now, or not at all", async () => {
    expect(await guards.reserveCallsNow(2)).toBe(2);
    expect(await guards.reserveCallsNow(2)).toBe(0);
    now += 640;
    expect(await guards.reserveCallsNow(2)).toBe(2);
    now += WINDOW;
    await guards.observeLimits({ ...quiet, holdMs: 10_000 });
    expect(await guards.reserveCallsNow(1)).toBe(0);
  });
});
