import type fc from "fast-check";

/**
 * How often a property is drawn: `usual` times in `npm test`, FUZZ_RUNS times (a hundred thousand) in the long run. `share`:
 * the part of FUZZ_RUNS for a property whose every run costs more. fast-check prints seed and path of what fails; SEED fixes
 * what is drawn, LONG_MINUTES how long.
 */
export function fuzzRuns(usual = 400, share = 1): fc.Parameters<unknown> & { numRuns: number } {
  const { FUZZ_RUNS, SEED, LONG_MINUTES } = process.env;
  const numRuns = FUZZ_RUNS === undefined ? usual : Math.max(usual, Math.ceil(Number(FUZZ_RUNS) * share));
  return {
    numRuns,
    ...(SEED ? { seed: Number(SEED) } : {}),
    ...(LONG_MINUTES ? { interruptAfterTimeLimit: Number(LONG_MINUTES) * 60_000 } : {}),
  };
}
