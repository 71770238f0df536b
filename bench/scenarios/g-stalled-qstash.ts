import type { Scenario } from "@/bench/scenarios/scenario";
import { demoStorm, FAULT_PATIENCE_MS } from "@/bench/scenarios/storms";

const LIMIT = 250;
const STALLED_AFTER_MS = 30_000;
const STALLED_MS = 120_000;

/** QStash takes messages and delivers none for two minutes; then all that were due come as fast as flow control lets them. */
export function stalledQStash(accounts: number): Scenario {
  return {
    name: "g",
    title: `the storm for ${accounts} accounts, QStash stalls for two minutes`,
    ...{ accounts, limit: LIMIT, patienceMs: FAULT_PATIENCE_MS, drains: true, isScarce: true, byQStash: true },
    async play({ world, replay, wait }) {
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      const stall = async () => {
        await wait(STALLED_AFTER_MS);
        world.qstash.faults.set({ stall: true });
        world.recorder.capacity({ fromMs: world.now(), limit: 0, users: 0 });
        await wait(STALLED_MS);
        world.qstash.faults.set({});
        world.recorder.capacity({ fromMs: world.now(), limit: LIMIT, users: 0 });
        world.recorder.fault(world.now());
      };
      await Promise.all([replay(demoStorm(world, accounts)), stall()]);
    },
  };
}
