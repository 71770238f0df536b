import type { Scenario } from "@/bench/scenarios/scenario";
import { holdingsEvent, numberOf } from "@/bench/scenarios/storms";
import { withChanges } from "@/sandbox/demo/storm";

const EVENT_EVERY_MS = 3_000;
const LENGTH_MS = 5 * 60_000;
/** What the last event may take: a minute and a run. */
const AFTER_MS = 65_000;
/** Events come for every so-many-th account. */
const STEP = 7;

/**
 * Every account's holdings are two days old; a sweep of them begins, and webhooks of single accounts come beside it. The sweep
 * takes hours at a usual limit: the row ends long before, because what matters is how long the events wait.
 */
export function staleSweep(accounts: number): Scenario {
  return {
    name: "b",
    title: `a sweep of ${accounts} stale accounts, a webhook every ${EVENT_EVERY_MS / 1000} seconds beside it`,
    ...{ accounts, limit: 250, activities: false, patienceMs: 0, drains: false, isScarce: true },
    counted: (accountId) => numberOf(accountId) % STEP === 0,
    async play({ world, running, replay, wait }) {
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      await world.sql`
        update snaptrade_accounts set holdings_synced_at = bench_clock() - interval '2 days',
          holdings_attempted_at = bench_clock() - interval '2 days'`;
      const accountIds = world.snaptrade.accounts().map(({ accountId }) => accountId);
      world.recorder.sweepBegan(accountIds, world.now());
      running.sweep(accountIds);
      const startMs = world.now();
      const count = LENGTH_MS / EVENT_EVERY_MS;
      // From the end: the accounts that a sweep reaches last.
      const posts = Array.from({ length: count }, (_, i) => {
        const index = accounts - 1 - ((accounts - 1) % STEP) - STEP * i;
        return holdingsEvent(index, i * EVENT_EVERY_MS, startMs);
      });
      await replay(withChanges(posts));
      await wait(AFTER_MS);
    },
  };
}
