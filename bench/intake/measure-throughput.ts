import type { Pool } from "undici";
import { machineTime } from "@/bench/child/usage";
import { cpuSecondsOf } from "@/bench/intake/app-usage";
import { assertOutcomes, countStored, KINDS, type Kind, PATHS, prepare } from "@/bench/intake/kinds";
import { postAll, type SignedEvent } from "@/bench/intake/load";
import type { App } from "@/bench/intake/start-app";
import type { IntakeStack } from "@/bench/intake/start-stack";
import { say } from "@/bench/run-row";

/** `machineBusy` is the share of the machine's processors that was in use, by whomever: the load and the databases too. */
export type Round = { perSecond: number; cpuMs: number; machineBusy: number };
export type Throughput = Record<Kind, Round[]>;

export type ThroughputOptions = { rounds: number; turns: number; events: number; inFlight: number };

/** What a kind has used so far in a round. */
type Used = { events: number; seconds: number; cpuSeconds: number; busy: number; machine: number };

/**
 * Each round plays every kind in so many turns, in an order that moves by one each turn: whatever changes on the machine,
 * for seconds or for minutes, befalls all. The first round warms up and does not count.
 */
export async function measureThroughput(
  stack: IntakeStack,
  app: App,
  pool: Pool,
  { rounds, turns, events, inFlight }: ThroughputOptions,
): Promise<Throughput> {
  const measured: Throughput = { bare: [], "bare+1": [], duplicate: [], coalesced: [], accepted: [] };
  for (let round = 0; round <= rounds; round += 1) {
    const used = new Map<Kind, Used>();
    for (let turn = 0; turn < turns; turn += 1) {
      for (const kind of rotated(KINDS, round * turns + turn)) {
        const signed = await prepare(kind, events, stack, pool);
        const { outcomes, ...one } = await playTurn(stack, app, pool, kind, signed, inFlight);
        if (round > 0) assertOutcomes(outcomes, [kind]);
        used.set(kind, sum(used.get(kind), one));
      }
    }
    for (const [kind, all] of used) {
      const result = roundOf(all);
      say(`${round === 0 ? "warm-up" : `round ${round}`}, ${kind}: ${told(result)}`);
      if (round > 0) measured[kind].push(result);
    }
  }
  return measured;
}

async function playTurn(
  stack: IntakeStack,
  app: App,
  pool: Pool,
  kind: Kind,
  signed: readonly SignedEvent[],
  inFlight: number,
): Promise<Used & { outcomes: string[] }> {
  const storedBefore = await stack.storedEvents();
  const cpuBefore = cpuSecondsOf(app.pid);
  const machineBefore = machineTime();
  const startedMs = performance.now();
  const outcomes = await postAll(pool, signed, PATHS[kind], inFlight);
  await stack.untilStored(storedBefore + countStored(outcomes));
  const seconds = (performance.now() - startedMs) / 1000;
  const machineAfter = machineTime();
  return {
    outcomes,
    events: signed.length,
    seconds,
    cpuSeconds: cpuSecondsOf(app.pid) - cpuBefore,
    busy: (machineAfter?.busy ?? 0) - (machineBefore?.busy ?? 0),
    machine: (machineAfter?.all ?? 0) - (machineBefore?.all ?? 0),
  };
}

function sum(before: Used | undefined, one: Used): Used {
  if (before === undefined) return one;
  return {
    events: before.events + one.events,
    seconds: before.seconds + one.seconds,
    cpuSeconds: before.cpuSeconds + one.cpuSeconds,
    busy: before.busy + one.busy,
    machine: before.machine + one.machine,
  };
}

function roundOf({ events, seconds, cpuSeconds, busy, machine }: Used): Round {
  return { perSecond: events / seconds, cpuMs: (cpuSeconds / events) * 1000, machineBusy: busy / machine };
}

/** From another one on, and every other time backwards. */
export function rotated<T>(all: readonly T[], by: number): T[] {
  const from = by % all.length;
  const order = [...all.slice(from), ...all.slice(0, from)];
  return by % 2 === 0 ? order : order.reverse();
}

function told({ perSecond, cpuMs, machineBusy }: Round): string {
  const busy = `machine ${(machineBusy * 100).toFixed(0)} % busy`;
  return `${perSecond.toFixed(0)} events/s, ${cpuMs.toFixed(2)} ms of processor an event, ${busy}`;
}
