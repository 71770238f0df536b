import { z } from "zod";
import type { Contestant } from "@/bench/contestant";

/** Loaded one by one: a contestant's process holds no other's libraries. */
const LOADERS = {
  this: () => import("@/bench/contestants/this"),
  before: () => import("@/bench/contestants/before"),
  plan: () => import("@/bench/contestants/plan"),
  bullmq: () => import("@/bench/contestants/bullmq"),
  "pg-boss": () => import("@/bench/contestants/pg-boss"),
  "graphile-worker": () => import("@/bench/contestants/graphile-worker"),
};

export type ContestantName = keyof typeof LOADERS;
export const CONTESTANT_NAMES = Object.keys(LOADERS) as ContestantName[];

export const contestantName = z.enum(CONTESTANT_NAMES);

export async function loadContestant(name: ContestantName): Promise<Contestant> {
  return (await LOADERS[name]()).contestant;
}
