import type { Running } from "@/bench/contestant";
import type { World } from "@/bench/world/start-world";
import type { StormPost } from "@/sandbox/demo/storm";

/** What a scenario plays with. */
export type Stage = {
  world: World;
  running: Running;
  /** Posts at the storm's own pace in the row's time; resolves when the last is answered. */
  replay(storm: readonly StormPost[]): Promise<void>;
  /** Until a moment of the row, counted from now. */
  wait(worldMs: number): Promise<void>;
};

export type Scenario = {
  name: string;
  title: string;
  accounts: number;
  /** Provider calls a minute. */
  limit: number;
  /** Where its work at the usual scale would be too much for two cores: the most that it takes. */
  mostTimeScale?: number;
  /** How long after the last event the row may go on until it counts as not drained, in the row's time. */
  patienceMs: number;
  /** False: at its end there is still work of later, and what the calls needed cannot be told from events. */
  drains: boolean;
  /** The accounts whose data and freshness count; absent: all. */
  counted?(accountId: string): boolean;
  play(stage: Stage): Promise<void>;
};
