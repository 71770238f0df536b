import { storm } from "@/bench/scenarios/a-storm";
import { failingAccounts } from "@/bench/scenarios/c-failing-accounts";
import { killedWorker } from "@/bench/scenarios/f-killed-worker";
import { flushedRedis } from "@/bench/scenarios/h-flushed-redis";
import type { Scenario } from "@/bench/scenarios/scenario";

const STORM_ACCOUNTS = 150;
const FAULT_ACCOUNTS = 80;
const SMOKE_ACCOUNTS = 24;

export const SMOKE = storm(SMOKE_ACCOUNTS);

export const SCENARIOS: readonly Scenario[] = [
  storm(STORM_ACCOUNTS),
  ...failingAccounts({ failing: 1_000, healthy: 50 }),
  killedWorker(FAULT_ACCOUNTS),
  flushedRedis(FAULT_ACCOUNTS),
];
