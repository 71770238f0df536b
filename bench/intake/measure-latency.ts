import type { Pool } from "undici";
import { assertOutcomes, countStored, KINDS, type Kind, PATHS, prepare } from "@/bench/intake/kinds";
import { postAtRate } from "@/bench/intake/load";
import { rotated } from "@/bench/intake/measure-throughput";
import type { IntakeStack } from "@/bench/intake/start-stack";
import { percentile } from "@/bench/report/analyse-runs";
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
      const result = { p50Ms: percentile(took, 0.5) ?? Number.NaN, p99Ms: percentile(took, 0.99) ?? Number.NaN };
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
