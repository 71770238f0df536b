import { expect, test } from "vitest";
import { amountOf, holdHistories } from "@/tests/histories/hold-histories";

/** Half of the histories; the other half runs beside it. */
test("I1 to I4, I6, I8: half of a hundred thousand histories", async () => {
  const amount = amountOf("HISTORIES", 100_000);
  const half = { ...amount, runs: Math.ceil(amount.runs / 2), seed: (amount.seed ?? 0) + 1 };
  const played = await holdHistories(half);
  process.stderr.write(`${played} histories held, seed ${half.seed}\n`);
  expect(played).toBeGreaterThanOrEqual(half.minutes === undefined ? half.runs : 1);
}, 3_600_000);
