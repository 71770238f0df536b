import type { Scenario } from "@/bench/scenarios/scenario";
import { demoStorm, FAULT_PATIENCE_MS } from "@/bench/scenarios/storms";

const LIMIT = 250;
/** In the middle of the storm's runs, and where the process is back again after. */
const KILLED_AFTER_MS = 30_000;
const AWAY_MS = 5_000;

export function killedWorker(accounts: number): Scenario {
  return {
    name: "f",
    title: `the storm for ${accounts} accounts, the worker killed in the middle`,
    ...{ accounts, limit: LIMIT, patienceMs: FAULT_PATIENCE_MS, drains: true, isScarce: true, kills: true },
    async play({ world, running, replay, wait }) {
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      const kill = async () => {
        await wait(KILLED_AFTER_MS);
        running.kill();
        world.recorder.fault(world.now());
        world.recorder.capacity({ fromMs: world.now(), limit: 0, users: 0 });
        await wait(AWAY_MS);
        await running.restart();
        world.recorder.capacity({ fromMs: world.now(), limit: LIMIT, users: 0 });
      };
      await Promise.all([replay(demoStorm(world, accounts)), kill()]);
    },
  };
}
