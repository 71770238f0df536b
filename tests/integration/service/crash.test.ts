import { afterAll, beforeAll, expect, test } from "vitest";
import type { RacePoint } from "@/lib/service";
import { CRASH_ROWS } from "@/tests/support/crash-rows";
import { type CrashWorld, startCrashWorld } from "@/tests/support/crash-world";
import { proveRecovery } from "@/tests/support/prove-recovery";

/** I8 at one point of each flow; `npm run test:long` has all of them. */
const POINTS: RacePoint[] = ["intake:accepted", "run:read", "sweep:accepted", "reconcile:handed-out"];

let world: CrashWorld;

beforeAll(async () => {
  world = await startCrashWorld({ accounts: 4 + POINTS.length });
}, 120_000);
afterAll(() => world.close());

test.each(POINTS)(
  "I8: a process that is killed at %s leaves every key fresh within the bound, and nothing done twice",
  {
    timeout: 60_000,
  },
  async (point) => {
    const [row] = CRASH_ROWS[point];
    if (row === undefined) throw new Error(`${point} has no row`);
    expect((await proveRecovery(world, point, row)).seconds).toBeGreaterThan(0);
  },
);
