import type { Scenario } from "@/bench/scenarios/scenario";
import { demoStorm, FAULT_PATIENCE_MS } from "@/bench/scenarios/storms";

const FLUSHED_AFTER_MS = 30_000;

export function flushedRedis(accounts: number): Scenario {
  return {
    name: "h",
    title: `the storm for ${accounts} accounts, Redis flushed in the middle`,
    ...{ accounts, limit: 250, patienceMs: FAULT_PATIENCE_MS, drains: true, isScarce: true },
    async play({ world, replay, wait }) {
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      const flush = async () => {
        await wait(FLUSHED_AFTER_MS);
        await world.redis.flush();
        world.recorder.fault(world.now());
      };
      await Promise.all([replay(demoStorm(world, accounts)), flush()]);
    },
  };
}
