import fc from "fast-check";
import { expect, test } from "vitest";
import { heal, play, step } from "@/tests/histories/steps";
import { World } from "@/tests/histories/world";

/** How many histories: a few thousand in `npm test`, 100,000 in `npm run test:long`. */
const RUNS = Number(process.env.HISTORIES ?? "2000");
const SEED = process.env.SEED === undefined ? {} : { seed: Number(process.env.SEED) };
const START = Date.UTC(2026, 3, 1);

test("I1 to I4, I6, I8: whatever comes, is lost, crashes, stalls or comes twice, in whatever order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 60 }), async (steps) => {
      const world = new World({ startAt: START });
      for (const each of steps) {
        await play(world, each);
        await world.pass(1);
        expect(world.watch.faults).toEqual([]);
      }
      await heal(world);
      world.watch.atRest();
      expect(world.watch.faults).toEqual([]);
    }),
    { numRuns: RUNS, ...SEED },
  );
}, 3_600_000);
