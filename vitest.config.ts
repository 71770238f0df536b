import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { "@": import.meta.dirname } },
  test: {
    include: ["tests/**/*.test.ts"],
    // `npm run test:long`
    exclude: ["tests/long/**"],
    globalSetup: ["tests/support/global-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Left alone vitest keeps one of two cores for itself.
    maxWorkers: 2,
    // Every test file resets what it uses, so that modules are read once a worker and not once a file.
    isolate: false,
    // A shared machine can stall a whole local stack past Redis's one second. The report still names what needed it.
    retry: process.env.CI ? 1 : 0,
  },
});
