import { defineConfig } from "vitest/config";

/**
 * What is too long for every change: the same properties as in `npm test`, often, and the matrices on real parts. The seed
 * is fixed, so that a failure is a failure of the code; SEED=... draws others.
 */
export default defineConfig({
  resolve: { alias: { "@": import.meta.dirname } },
  test: {
    include: ["tests/long/**/*.test.ts", "tests/histories/**/*.test.ts", "tests/fuzz/**/*.test.ts"],
    globalSetup: ["tests/support/global-setup.ts"],
    env: { SEED: "20260401", HISTORIES: "100000", TWIN_HISTORIES: "2000", FUZZ_RUNS: "100000", ...given() },
    testTimeout: 900_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    retry: process.env.CI ? 1 : 0,
  },
});

/** What the caller wants otherwise. */
function given(): Record<string, string> {
  const names = ["SEED", "HISTORIES", "TWIN_HISTORIES", "FUZZ_RUNS"];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
