import type { Pool } from "undici";
import { type IdleMemory, idleMemory } from "@/bench/intake/app-usage";
import {
  acceptBusyAccounts,
  assertOutcomes,
  BUSY_ACCOUNTS,
  countStored,
  newEvent,
  PATHS,
  pick,
} from "@/bench/intake/kinds";
import { postAll, type SignedEvent } from "@/bench/intake/load";
import type { App } from "@/bench/intake/start-app";
import type { IntakeStack } from "@/bench/intake/start-stack";
import { say } from "@/bench/run-row";

export type MemoryOptions = { early: number; late: number; inFlight: number; idleSeconds: number };
export type Memory = (IdleMemory & { events: number })[];

/** Signed and posted at a time; then the intake forgets, so that accounts without a queued job are there again. */
const PART = 10_000;

/** Of ten events: one is accepted, four are coalesced, five are duplicates. */
const MIXTURE = ["accepted", ...Array(4).fill("coalesced"), ...Array(5).fill("duplicate")] as const;

/**
 * What the app's process holds after so many events of all kinds, and after many more. It should be a fresh one that
 * collects on a signal.
 */
export async function measureMemory(
  stack: IntakeStack,
  app: App,
  pool: Pool,
  { early, late, inFlight, idleSeconds }: MemoryOptions,
): Promise<Memory> {
  const memory: Memory = [];
  let posted = 0;
  for (const total of [early, late]) {
    while (posted < total) {
      const count = Math.min(PART, total - posted);
      await postMixture(stack, pool, count, inFlight);
      posted += count;
      say(`memory: ${posted} of ${late} events`);
    }
    const idle = await idleMemory(app.pid, idleSeconds);
    say(`memory after ${posted} events: ${idle.heldMb.toFixed(0)} MB held, ${idle.leftMb.toFixed(0)} MB before`);
    memory.push({ events: posted, ...idle });
  }
  return memory;
}

async function postMixture(stack: IntakeStack, pool: Pool, count: number, inFlight: number): Promise<void> {
  await stack.forget();
  const first = await acceptBusyAccounts(pool);
  let fresh = BUSY_ACCOUNTS;
  const events = Array.from({ length: count }, (_, i): SignedEvent => {
    switch (pick(MIXTURE, i)) {
      case "accepted":
        return newEvent(fresh++);
      case "duplicate":
        return pick(first, i);
      default:
        return newEvent(i % BUSY_ACCOUNTS);
    }
  });
  const storedBefore = await stack.storedEvents();
  const outcomes = await postAll(pool, events, PATHS.accepted, inFlight);
  await stack.untilStored(storedBefore + countStored(outcomes));
  assertOutcomes(outcomes, ["accepted", "coalesced", "duplicate"]);
}
