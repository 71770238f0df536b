import type { Pool } from "undici";
import { cpuSecondsOf } from "@/bench/intake/app-usage";
import { assertOutcomes, countStored, KINDS, type Kind, PATHS, prepare } from "@/bench/intake/kinds";
import { postAll, type SignedEvent } from "@/bench/intake/load";
import type { App } from "@/bench/intake/start-app";
import type { IntakeStack } from "@/bench/intake/start-stack";
import { say } from "@/bench/run-row";

export type Round = { perSecond: number; cpuMs: number };
export type Throughput = Record<Kind, Round[]>;

export type ThroughputOptions = { rounds: number; events: number; inFlight: number };

/**
 * Each round plays every kind once, in an order that moves by one: whatever changes on the machine befalls all. The first
 * round warms up and does not count. Written as events a second and processor milliseconds of the app an event.
 */
export async function measureThroughput(
  stack: IntakeStack,
  app: App,
  pool: Pool,
  { rounds, events, inFlight }: ThroughputOptions,
): Promise<Throughput> {
  const measured: Throughput = { bare: [], "bare+1": [], duplicate: [], coalesced: [], accepted: [] };
  for (let round = 0; round <= rounds; round += 1) {
    for (const kind of rotated(KINDS, round)) {
      const signed = await prepare(kind, events, stack, pool);
      const { outcomes, result } = await playRound(stack, app, pool, kind, signed, inFlight);
      say(`${round === 0 ? "warm-up" : `round ${round}`}, ${kind}: ${told(result)}`);
      if (round === 0) continue;
      assertOutcomes(outcomes, [kind]);
      measured[kind].push(result);
    }
  }
  return measured;
}

async function playRound(
  stack: IntakeStack,
  app: App,
  pool: Pool,
  kind: Kind,
  signed: readonly SignedEvent[],
  inFlight: number,
): Promise<{ outcomes: string[]; result: Round }> {
  const storedBefore = await stack.storedEvents();
  const cpuBefore = cpuSecondsOf(app.pid);
  const startedMs = performance.now();
  const outcomes = await postAll(pool, signed, PATHS[kind], inFlight);
  await stack.untilStored(storedBefore + countStored(outcomes));
  const seconds = (performance.now() - startedMs) / 1000;
  const cpuSeconds = cpuSecondsOf(app.pid) - cpuBefore;
  return { outcomes, result: { perSecond: signed.length / seconds, cpuMs: (cpuSeconds / signed.length) * 1000 } };
}

/** From another one on, and every other time backwards. */
export function rotated<T>(all: readonly T[], by: number): T[] {
  const from = by % all.length;
  const order = [...all.slice(from), ...all.slice(0, from)];
  return by % 2 === 0 ? order : order.reverse();
}

function told({ perSecond, cpuMs }: Round): string {
  return `${perSecond.toFixed(0)} events/s, ${cpuMs.toFixed(2)} ms of processor an event`;
}
