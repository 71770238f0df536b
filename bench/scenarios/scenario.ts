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
  /** False: they begin without transactions. */
  activities?: boolean;
  /** Provider calls a minute. */
  limit: number;
  /** Where its work at the usual scale would be too much for two cores: the most that it takes. */
  mostTimeScale?: number;
  /** How long after the last event the row may go on until it counts as not drained, in the row's time. */
  patienceMs: number;
  /** There is more work than the limit lets through for most of the time, so that how much of it is used can be told. */
  isScarce: boolean;
  /** False: at its end there is still work of later, and what the calls needed cannot be told from events. */
  drains: boolean;
  /** The accounts whose data and freshness count; absent: all. */
  counted?(accountId: string): boolean;
  /** The accounts that are only read for users. */
  forUsers?(accountId: string): boolean;
  /** So long after the moment that the scenario marks the background may still meet 429s. */
  excusedMs?: number;
  /** It is what the service's own row of another scenario is held against; the others have no use for it. */
  isOwnBaseline?: true;
  /** Its worker is killed: a second one stands ready. */
  kills?: true;
  /** QStash is what fails: a queue without it sees nothing of it. */
  byQStash?: true;
  play(stage: Stage): Promise<void>;
};
