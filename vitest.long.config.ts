import { defineConfig } from "vitest/config";

/**
 * What is too long for every change: the same properties as in `npm test`, often, and the matrices on real parts. The seed
 * is fixed, so that a failure is a failure of the code; SEED=... draws others. LONG_MINUTES bounds what draws at random.
 */
export default defineConfig({
  resolve: { alias: { "@": import.meta.dirname } },
  test: {
    include: ["tests/long/**/*.test.ts", "tests/histories/differential.test.ts", "tests/fuzz/**/*.test.ts"],
    globalSetup: ["tests/support/global-setup.ts"],
    env: {
      SEED: process.env.SEED ?? "20260401",
      TWIN_HISTORIES: process.env.TWIN_HISTORIES ?? "2000",
      FUZZ_RUNS: process.env.FUZZ_RUNS ?? "100000",
    },
    testTimeout: 900_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    // Every test file resets what it uses, so that modules are read once a worker and not once a file.
    isolate: false,
    retry: process.env.CI ? 1 : 0,
  },
});
