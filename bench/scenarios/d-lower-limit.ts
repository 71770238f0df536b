import type { Scenario } from "@/bench/scenarios/scenario";
import { demoStorm, FAULT_PATIENCE_MS } from "@/bench/scenarios/storms";

const LIMIT = 250;
const LOWERED_AFTER_MS = 75_000;
const RESTORED_AFTER_MS = 180_000;
/** A call that is under way when the limit falls. */
const IN_FLIGHT_MS = 2_000;

export function lowerLimit(accounts: number): Scenario {
  return {
    name: "d",
    title: `the storm for ${accounts} accounts, the provider's limit a quarter for three minutes`,
    ...{ accounts, limit: LIMIT, patienceMs: FAULT_PATIENCE_MS, drains: true, isScarce: true, excusedMs: IN_FLIGHT_MS },
    async play({ world, replay, wait }) {
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      const change = async () => {
        await wait(LOWERED_AFTER_MS);
        world.recorder.mark(world.now());
        await world.setLimit(Math.floor(LIMIT / 4));
        await wait(RESTORED_AFTER_MS);
        await world.setLimit(LIMIT);
      };
      await Promise.all([replay(demoStorm(world, accounts)), change()]);
    },
  };
}
