import fc from "fast-check";
import { expect, test } from "vitest";
import { FlowControl } from "@/sandbox/qstash/flow-control";
import type { Ticket } from "@/sandbox/qstash/flow-key";
import { VirtualClock } from "@/sandbox/qstash/virtual-clock";

test("in any history the limits of the moment are kept, each key is first in first out, and nobody is forgotten", () => {
  const keys = ["a", "b", "c"];
  const key = fc.constantFrom(...keys);
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("enter" as const), key }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("release" as const), pick: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const), pick: fc.nat() }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 1_500 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("pause" as const), key, paused: fc.boolean() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("configure" as const),
        key,
        parallelism: fc.integer({ min: 1, max: 3 }),
        rate: fc.integer({ min: 1, max: 6 }),
      }),
    },
  );
  const PERIOD_MS = 1_000;
  const GLOBAL = 4;
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 120 }), (steps) => {
      const clock = new VirtualClock(0);
      const flow = new FlowControl(clock, GLOBAL);
      const limits = new Map<string, { parallelism: number; rate: number }>();
      const configure = (name: string, of: { parallelism: number; rate: number }) => {
        limits.set(name, of);
        flow.configure(name, { ...of, periodMs: PERIOD_MS });
      };
      for (const name of keys) configure(name, { parallelism: 2, rate: 3 });
      const paused = new Set<string>();
      const periods = new Map<string, { from: number; starts: number }>();
      const waiting: Ticket[] = [];
      const running: Ticket[] = [];
      const enter = (name: string) => {
        const ticket: Ticket = flow.ticket(name, () => {
          expect(waiting.filter((other) => other.key === name)[0]).toBe(ticket);
          waiting.splice(waiting.indexOf(ticket), 1);
          running.push(ticket);
          const { parallelism = 0, rate = 0 } = limits.get(name) ?? {};
          expect(paused.has(name)).toBe(false);
          expect(running.length).toBeLessThanOrEqual(GLOBAL);
          expect(running.filter((other) => other.key === name).length).toBeLessThanOrEqual(parallelism);
          // Fixed periods; the first start after the end of one begins the next.
          const period = periods.get(name);
          const goesOn = period !== undefined && clock.now() < period.from + PERIOD_MS;
          const { from, starts } = goesOn ? period : { from: clock.now(), starts: 0 };
          periods.set(name, { from, starts: starts + 1 });
          expect(starts + 1).toBeLessThanOrEqual(rate);
        });
        waiting.push(ticket);
        flow.enter(ticket);
      };
      const take = (from: Ticket[], pick: number) => from.splice(pick % Math.max(1, from.length), 1)[0];
      for (const move of steps) {
        if (move.do === "enter") enter(move.key);
        else if (move.do === "advance") clock.advance(move.ms);
        else if (move.do === "configure") configure(move.key, { parallelism: move.parallelism, rate: move.rate });
        else if (move.do === "pause") {
          if (move.paused) paused.add(move.key);
          else paused.delete(move.key);
          flow.setPaused(move.key, move.paused);
        } else {
          const ticket = take(move.do === "release" ? running : waiting, move.pick);
          if (ticket === undefined) continue;
          if (move.do === "release") flow.release(ticket);
          else flow.leave(ticket);
        }
      }
      paused.clear();
      for (const name of keys) flow.setPaused(name, false);
      for (let round = 0; running.length + waiting.length > 0; round++) {
        expect(round).toBeLessThan(steps.length + 10);
        for (const ticket of running.splice(0)) flow.release(ticket);
        clock.advance(PERIOD_MS);
      }
    }),
    { numRuns: 300 },
  );
});
