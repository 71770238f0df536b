import type { Pool } from "undici";
import { assertOutcomes, countStored, KINDS, type Kind, PATHS, prepare } from "@/bench/intake/kinds";
import { postAtRate } from "@/bench/intake/load";
import { rotated } from "@/bench/intake/measure-throughput";
import type { IntakeStack } from "@/bench/intake/start-stack";
import { say } from "@/bench/run-row";

export const PER_SECOND = 100;

export type LatencyRound = { p50Ms: number; p99Ms: number };
export type Latency = Record<Exclude<Kind, "bare">, LatencyRound[]>;

/** Every kind in turn at a constant rate, so many seconds each time; the first round does not count. */
export async function measureLatency(
  stack: IntakeStack,
  pool: Pool,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<Latency> {
  const measured: Latency = { "bare+1": [], duplicate: [], coalesced: [], accepted: [] };
  for (let round = 0; round <= rounds; round += 1) {
    for (const kind of rotated(KINDS, round)) {
      if (kind === "bare") continue;
      const signed = await prepare(kind, PER_SECOND * seconds, stack, pool);
      const storedBefore = await stack.storedEvents();
      const answers = await postAtRate(pool, signed, PATHS[kind], PER_SECOND);
      const outcomes = answers.map(({ outcome }) => outcome);
      await stack.untilStored(storedBefore + countStored(outcomes));
      const took = answers.map(({ tookMs }) => tookMs);
      const result = { p50Ms: quantile(took, 0.5), p99Ms: quantile(took, 0.99) };
      if (round === 0) continue;
      assertOutcomes(outcomes, [kind]);
      say(
        `at ${PER_SECOND}/s, round ${round}, ${kind}: p50 ${result.p50Ms.toFixed(1)}, p99 ${result.p99Ms.toFixed(1)} ms`,
      );
      measured[kind].push(result);
    }
  }
  return measured;
}

/** The least value that so much of all is not above. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}
