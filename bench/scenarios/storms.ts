import type { World } from "@/bench/world/start-world";
import { makeStorm } from "@/sandbox/demo/make-storm";
import type { StormPost } from "@/sandbox/demo/storm";
import { SNAPTRADE_KEYS } from "@/sandbox/stack/start-stack";

/** Events for each account, and seconds: those of `npm run demo`, whose 300 accounts get 2,000 events. */
const EVENTS_AN_ACCOUNT = 2_000 / 300;
const LENGTH_MS = 45_000;

/** The storm of the demo for fewer accounts: the same mixture, density and length. */
export function demoStorm(world: World, accounts: number): StormPost[] {
  const events = Math.round(accounts * EVENTS_AN_ACCOUNT);
  return makeStorm({ ...SNAPTRADE_KEYS, seed: 1, accounts, events, lengthMs: LENGTH_MS, startMs: world.now() });
}
