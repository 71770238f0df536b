import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { watchSleeps } from "@/bench/child/watch-sleeps";

const slept: number[] = [];
// Once: it stands in the place of the timers of this process.
const asFunction = watchSleeps((ms) => slept.push(ms));

test.each([
  ["a promise", () => sleep(2)],
  ["a callback", () => new Promise<void>((resolve) => void setTimeout(resolve, 2))],
])("a function that waits by %s has slept", async (_, wait) => {
  slept.splice(0);
  await asFunction(wait);
  expect(slept).toEqual([2]);
});

test("a time limit that the answer clears is no sleep, nor is a wait outside of functions", async () => {
  slept.splice(0);
  await asFunction(async () => clearTimeout(setTimeout(() => undefined, 2)));
  await sleep(4);
  expect(slept).toEqual([]);
});

test("what was set before a function began is not its sleep", async () => {
  slept.splice(0);
  const before = sleep(2);
  await asFunction(() => before);
  expect(slept).toEqual([]);
});
