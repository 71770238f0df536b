import { expect, test } from "vitest";
import { amountOf, holdHistories } from "@/tests/histories/hold-histories";

test("I1 to I4, I6, I8: whatever comes, is lost, crashes, stalls or comes twice, in whatever order", async () => {
  expect(await holdHistories(amountOf("HISTORIES", 1_500))).toBeGreaterThan(0);
}, 3_600_000);
