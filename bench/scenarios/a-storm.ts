import type { Scenario } from "@/bench/scenarios/scenario";
import { demoStorm } from "@/bench/scenarios/storms";

/** `npm run demo`'s storm at the limit of a usual contract. */
export function storm(accounts: number): Scenario {
  return {
    name: "a",
    title: `the demo's storm for ${accounts} accounts`,
    ...{ accounts, limit: 250, patienceMs: 40 * 60_000, drains: true, isScarce: true },
    async play({ world, replay }) {
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      await replay(demoStorm(world, accounts));
    },
  };
}
