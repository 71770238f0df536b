import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Publishable } from "@/lib/domain";
import type { Guards } from "@/lib/snaptrade-webhook-guards";
import {
  type BudgetDriver,
  busiestWindow,
  CEILING,
  driveBudget,
  LIMIT,
  positive,
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

type Given = {
  jobs: number;
  /** How long the deliveries are looked at. */
  ms: number;
  /** How late QStash delivers the n-th message, beyond the whole second that it rounds up to. */
  lateness: (n: number) => number;
  /** Whose deployment admits the n-th one. */
  guards?: (n: number) => Guards;
  /** Nothing is delivered from the one to the other; then all that waited is. */
  stall?: [from: number, to: number];
  onGo?: () => Promise<void>;
};

/** A backlog of holdings jobs, each delivered as QStash does and put back where the budget says so. */
async function drain({ jobs, ms, lateness, guards = () => budget.guards, stall = [0, 0], onGo }: Given) {
  const start = budget.now;
  let count = 0;
  const dueAfter = (wait: number) => {
    count += 1;
    const at = budget.now + Math.ceil(wait / 1000) * 1000 + lateness(count);
    return at - start >= stall[0] && at - start < stall[1] ? start + stall[1] + (count % 500) : at;
  };
  const all = budget.jobs(jobs);
  const waits = await budget.reserve(all, guards(0));
  const queue = all.map((job, i) => ({ job: job as Publishable, delivery: 1, at: dueAfter(waits[i] ?? 0) }));
  const calls: number[] = [];
  let done = 0;
  for (;;) {
    queue.sort((a, b) => a.at - b.at);
    const message = queue.shift();
    if (message === undefined || message.at > start + ms) break;
    budget.now = Math.max(budget.now, message.at);
    const admitted = await budget.admit(message.job, 0, message.delivery, guards(count));
    if (admitted.kind === "go") {
      done += 1;
      calls.push(budget.now, budget.now, budget.now);
      await onGo?.();
    } else if (admitted.kind === "defer") {
      queue.push({ ...message, delivery: message.delivery + 1, at: dueAfter(admitted.waitMs) });
    }
  }
  return { done, calls, perMinute: calls.length / ((budget.now - start) / WINDOW) };
}

describe("I5, I8: deliveries that come late neither pass the ceiling nor lose the budget", () => {
  test.each([0, 1_500, 2_500, 4_000, 10_000])("all of them %i ms late", async (late) => {
    const { done, calls, perMinute } = await drain({ jobs: 150, ms: 300_000, lateness: () => late });
    expect(done).toBe(150);
    expect(perMinute).toBeGreaterThan(LIMIT * SHARE * 0.85);
    expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
  });

  test("every other one five seconds late", async () => {
    const { done, calls } = await drain({ jobs: 200, ms: 400_000, lateness: (n) => (n % 2 === 0 ? 300 : 5_000) });
    expect(done).toBe(200);
    expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
  });

  test("nothing comes for a minute, then everything at once", async () => {
    const stalled = { jobs: 200, ms: 400_000, lateness: (n: number) => (n * 37) % 1000 };
    const { done, calls } = await drain({ ...stalled, stall: [20_000, 80_000] });
    expect(done).toBe(200);
    expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
  });
});

describe("I5: a limit that changes lifts nothing and blocks nobody", () => {
  test("a limit that changes from answer to answer", async () => {
    const onGo = async () => {
      await budget.guards.observeLimits({ ...quiet, limit: 100 });
      await budget.guards.observeLimits({ ...quiet, limit: LIMIT });
    };
    const { done, calls } = await drain({ jobs: 150, ms: 120_000, lateness: () => 300, onGo });
    expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
    expect(done).toBeGreaterThan(80);
  });

  test("two deployments of two limits, each job fresh", async () => {
    const deployments = [budget.guardsFor(LIMIT), budget.guardsFor(300)];
    const calls: number[] = [];
    for (let i = 0; i < 600; i += 1) {
      budget.now += 100;
      const admitted = await budget.admit(budget.job(), 0, 1, deployments[i % 2]);
      if (admitted.kind === "go") calls.push(budget.now, budget.now, budget.now);
    }
    expect(busiestWindow(calls)).toBeLessThanOrEqual(300 * (SHARE + 0.05));
    expect(calls.length).toBeGreaterThan(0);
  });

  test("a limit that is raised frees the pointer, whatever asks first", async () => {
    await budget.reserve(budget.jobs(1000));
    const raised = budget.guardsFor(4000);
    await raised.findSlots([]);
    expect(await budget.reserve([budget.job()], raised)).toEqual([0]);
  });
});

test.each(["the old one first", "the newest first"])(
  "an old delivery that comes late takes nothing: %s",
  async (order) => {
    // As after a stall: both deliveries of a job come when their slots have passed, and others have work waiting.
    const [first = budget.job(), late = budget.job()] = budget.jobs(2);
    await budget.reserve([first, late]);
    budget.now += 40_000;
    await budget.reserve([{ ...late, delivery: 2 }]);
    budget.now += 40_000;
    await budget.reserve(budget.jobs(20));
    expect(await budget.admit(first)).toMatchObject({ kind: "go" });
    const newest = () => budget.admit(late, 0, 2);
    const old = () => budget.admit(late, 0, 1);
    const [waiting, taken] =
      order === "the newest first" ? [await newest(), await old()] : [await old(), await newest()].reverse();
    expect(waiting).toMatchObject({ kind: "defer", reason: "budget", reserved: true });
    expect(taken).toMatchObject({ kind: "defer", reason: "budget", reserved: false });
    // 20 jobs and the newest delivery, nothing between them.
    const [wait] = await budget.reserve([budget.job()]);
    expect(wait).toBe(Math.ceil((21 * 3 * WINDOW) / (LIMIT * SHARE)));
  },
);

describe("I5: what is given back was nobody else's", () => {
  test("slots of later that the pointer had jumped over are not handed out again", async () => {
    const start = budget.now;
    const calls: number[] = [];
    const take = async (jobs: Publishable[]) => {
      for (const wait of await budget.reserve(jobs)) calls.push(...Array(3).fill(start + wait));
    };
    await take(budget.jobs(40, 3, 10_000));
    const bulk = budget.jobs(20);
    expect(positive(await budget.guards.reserveSlots(bulk, WINDOW))).toHaveLength(20);
    await take([budget.job(3, 59_500)]);
    await budget.guards.giveBackSlots(
      bulk.map((job) => ({ ...job, retried: 0 })),
      {},
    );
    await take(budget.jobs(60));
    expect(busiestWindow(calls)).toBeLessThanOrEqual(CEILING);
  });

  test("a message that comes late takes nothing from the delivery after it", async () => {
    const job = budget.job();
    await budget.reserve(budget.jobs(100));
    const newest = { ...job, delivery: 2 };
    const [wait] = await budget.reserve([newest]);
    await budget.reserve(budget.jobs(100));
    expect(await budget.admit(job, 0, 1)).toMatchObject({ kind: "defer", reserved: false });
    expect(await budget.guards.findSlots([newest])).toEqual([wait]);
  });
});

test("jobs of one call that are due each second leave the holdings between them nearly the whole share", async () => {
  await budget.reserve(Array.from({ length: 59 }, (_, i) => budget.job(1, (i + 1) * 1000)));
  const waits = await budget.reserve(budget.jobs(100));
  const inTheMinute = waits.filter((wait) => wait < WINDOW - 1000).length * 3 + 58;
  expect(inTheMinute / ((LIMIT * SHARE * 59) / 60)).toBeGreaterThan(0.9);
});
