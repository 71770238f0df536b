import { setTimeout as sleep } from "node:timers/promises";
import type { Running } from "@/bench/contestant";
import { holdingsEvent } from "@/bench/scenarios/storms";
import type { World } from "@/bench/world/start-world";

/** Requests that arrived at the three fronts. */
type Trips = { redis: number; postgres: number; qstash: number };
export type RoundTrips = { accepted: Trips; duplicate: Trips; coalesced: Trips; run: Trips };

/** A cron's own requests may fall into one of them. */
const PROBES = 3;
/** In real time: much longer than a request takes. */
const STILL_FOR_MS = 100;

/**
 * What single events and a run cost, counted at the fronts while nothing else happens: an event, the same again, another of
 * the same account while the first one's job waits (QStash holds it back for so long), and the run that covers them. The
 * least of three.
 */
export async function countRoundTrips(
  world: World,
  running: Running,
  quiet: () => Promise<unknown>,
): Promise<RoundTrips> {
  const probes: RoundTrips[] = [];
  for (let index = 0; index < PROBES; index += 1) {
    const startMs = world.now();
    const first = holdingsEvent(index, 0, startMs);
    const second = holdingsEvent(index, 1, startMs);
    const post = ({ body, signature }: typeof first) => running.post(body, signature);
    world.qstash.faults.set({ stall: true });
    // What a function does after its answer belongs to its event.
    const settled = async (event: typeof first) => {
      await post(event);
      await still(world);
    };
    const accepted = await tripsOf(world, () => settled(first));
    const duplicate = await tripsOf(world, () => settled(first));
    const coalesced = await tripsOf(world, () => settled(second));
    world.qstash.faults.set({});
    probes.push({ accepted, duplicate, coalesced, run: await tripsOf(world, quiet) });
  }
  const least = (kind: keyof RoundTrips): Trips => ({
    redis: Math.min(...probes.map((probe) => probe[kind].redis)),
    postgres: Math.min(...probes.map((probe) => probe[kind].postgres)),
    qstash: Math.min(...probes.map((probe) => probe[kind].qstash)),
  });
  return {
    accepted: least("accepted"),
    duplicate: least("duplicate"),
    coalesced: least("coalesced"),
    run: least("run"),
  };
}

async function still(world: World): Promise<void> {
  for (let before = -1, now = requestsSoFar(world); now !== before; now = requestsSoFar(world)) {
    before = now;
    await sleep(STILL_FOR_MS);
  }
}

function requestsSoFar(world: World): number {
  const { redis, postgres, qstash } = tripsSoFar(world);
  return redis + postgres + qstash;
}

async function tripsOf(world: World, work: () => Promise<unknown>): Promise<Trips> {
  const before = tripsSoFar(world);
  await work();
  const after = tripsSoFar(world);
  return {
    redis: after.redis - before.redis,
    postgres: after.postgres - before.postgres,
    qstash: after.qstash - before.qstash,
  };
}

function tripsSoFar(world: World): Trips {
  const { redis, postgres, qstash } = world.counted();
  return { redis, postgres, qstash };
}
