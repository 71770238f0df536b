import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { VirtualClock } from "@/sandbox/qstash/virtual-clock";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("at scale 60 a minute passes in a second, and timers run at their emulated time", () => {
  const clock = new VirtualClock(60);
  const start = clock.now();
  const ran: number[] = [];
  clock.setTimer(start + 60_000, () => ran.push(clock.now() - start));
  vi.advanceTimersByTime(999);
  expect(ran).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(ran).toEqual([60_000]);
});

test("a clock of scale 0 stands still until it is advanced", () => {
  const clock = new VirtualClock(0);
  const start = clock.now();
  const ran: string[] = [];
  clock.setTimer(start + 1, () => ran.push("timer"));
  vi.advanceTimersByTime(3_600_000);
  expect([clock.now(), ran]).toEqual([start, []]);
  clock.advance(1);
  expect([clock.now(), ran]).toEqual([start + 1, ["timer"]]);
});

test("advancing runs every timer at its own time, in order, also those set on the way", () => {
  const clock = new VirtualClock(0);
  const start = clock.now();
  const ran: [string, number][] = [];
  const note = (name: string) => ran.push([name, clock.now() - start]);
  clock.setTimer(start + 300, () => note("late"));
  clock.setTimer(start + 100, () => {
    note("early");
    clock.setTimer(clock.now() + 50, () => note("set on the way"));
  });
  clock.setTimer(start + 1_001, () => note("beyond"));
  clock.advance(1_000);
  expect(ran).toEqual([
    ["early", 100],
    ["set on the way", 150],
    ["late", 300],
  ]);
  expect(clock.now() - start).toBe(1_000);
});

test("a change of scale re-arms the timers that are already set", () => {
  const clock = new VirtualClock(1);
  let ran = false;
  clock.setTimer(clock.now() + 60_000, () => {
    ran = true;
  });
  vi.advanceTimersByTime(30_000);
  clock.setScale(30);
  vi.advanceTimersByTime(999);
  expect(ran).toBe(false);
  vi.advanceTimersByTime(1);
  expect(ran).toBe(true);
});

test("a timer a month away does not run early", () => {
  const clock = new VirtualClock(1);
  let ran = false;
  clock.setTimer(clock.now() + 30 * 86_400_000, () => {
    ran = true;
  });
  vi.advanceTimersByTime(30 * 86_400_000 - 1);
  expect(ran).toBe(false);
  vi.advanceTimersByTime(1);
  expect(ran).toBe(true);
});

test("a moment of the outside world is as far away in emulated time as by its own clock", () => {
  const clock = new VirtualClock(0);
  clock.advance(86_400_000);
  expect(clock.fromWallTime(Date.now() + 5_000) - clock.now()).toBe(5_000);
});

test("cancelled timers never run, the others all do, in the order of their times", () => {
  const timer = fc.record({ at: fc.integer({ min: 0, max: 1_000 }), cancelled: fc.boolean() });
  const timers = fc.array(timer, { minLength: 20, maxLength: 200, size: "max" });
  fc.assert(
    fc.property(timers, (plan) => {
      const clock = new VirtualClock(0);
      const start = clock.now();
      const ran: number[] = [];
      const set = plan.map(({ at }, index) => clock.setTimer(start + at, () => ran.push(index)));
      plan.forEach(({ cancelled }, index) => {
        if (cancelled) set[index]?.cancel();
      });
      clock.advance(1_000);
      const expected = plan
        .map(({ at, cancelled }, index) => ({ at, cancelled, index }))
        .filter(({ cancelled }) => !cancelled)
        .sort((a, b) => a.at - b.at || a.index - b.index)
        .map(({ index }) => index);
      expect(ran).toEqual(expected);
    }),
  );
});

test("time is never turned back", () => {
  const clock = new VirtualClock(0);
  expect(() => clock.advance(-1)).toThrow(RangeError);
  expect(() => clock.setScale(-1)).toThrow(RangeError);
});
