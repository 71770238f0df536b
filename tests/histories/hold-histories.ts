import fc from "fast-check";
import { heal, play, step } from "@/tests/histories/steps";
import { World } from "@/tests/histories/world";

const START = Date.UTC(2026, 3, 1);

export type Amount = {
  runs: number;
  seed: number | undefined;
  /** No history is begun after that: a bound for machines that are slower than the number asks for. */
  minutes: number | undefined;
};

/** From the environment: HISTORIES, SEED, LONG_MINUTES. */
export function amountOf(name: string, otherwise: number): Amount {
  const given = (variable: string) => (process.env[variable] ? Number(process.env[variable]) : undefined);
  return { runs: given(name) ?? otherwise, seed: given("SEED"), minutes: given("LONG_MINUTES") };
}

export function parametersOf({ runs, seed, minutes }: Amount): fc.Parameters<unknown> {
  return {
    numRuns: runs,
    ...(seed === undefined ? {} : { seed }),
    ...(minutes === undefined ? {} : { interruptAfterTimeLimit: minutes * 60_000 }),
  };
}

/**
 * Plays so many random histories of 30 to 60 steps, each to its end, and looks after every step. Throws with the seed,
 * the path and the shortest history that breaks a guarantee. Answers how many were played.
 */
export async function holdHistories(amount: Amount): Promise<number> {
  let played = 0;
  const property = fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 60 }), async (steps) => {
    played += 1;
    const world = new World({ startAt: START });
    for (const each of steps) {
      await play(world, each);
      await world.pass(1);
      broken(world);
    }
    await heal(world);
    world.watch.atRest();
    broken(world);
  });
  await fc.assert(property, parametersOf(amount));
  return played;
}

function broken(world: World): void {
  if (world.watch.faults.length > 0) throw new Error(world.watch.faults.join("\n"));
}
