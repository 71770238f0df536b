import { storm } from "@/bench/scenarios/a-storm";
import { staleSweep } from "@/bench/scenarios/b-stale-sweep";
import { failingAccounts } from "@/bench/scenarios/c-failing-accounts";
import { lowerLimit } from "@/bench/scenarios/d-lower-limit";
import { userCalls } from "@/bench/scenarios/e-user-calls";
import { killedWorker } from "@/bench/scenarios/f-killed-worker";
import { stalledQStash } from "@/bench/scenarios/g-stalled-qstash";
import { flushedRedis } from "@/bench/scenarios/h-flushed-redis";
import type { Scenario } from "@/bench/scenarios/scenario";

const STORM_ACCOUNTS = 150;
const FAULT_ACCOUNTS = 80;
const STALE_ACCOUNTS = 5_000;
const SMOKE_ACCOUNTS = 24;

export const SMOKE = storm(SMOKE_ACCOUNTS);

export const SCENARIOS: readonly Scenario[] = [
  storm(STORM_ACCOUNTS),
  staleSweep(STALE_ACCOUNTS),
  ...failingAccounts({ failing: 1_000, healthy: 50 }),
  lowerLimit(STORM_ACCOUNTS),
  userCalls(STORM_ACCOUNTS),
  killedWorker(STORM_ACCOUNTS),
  stalledQStash(FAULT_ACCOUNTS),
  flushedRedis(FAULT_ACCOUNTS),
];
