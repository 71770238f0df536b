import { z } from "zod";
import { WORK_TYPES } from "@/lib/domain";

export const toServe = z.object({
  do: z.literal("serve"),
  port: z.number(),
  clock: z.object({ scale: z.number(), startMs: z.number() }),
  env: z.record(z.string(), z.string()),
  databaseUrl: z.string(),
  redisUrl: z.string(),
});
export const order = z.discriminatedUnion("do", [
  toServe,
  z.object({ do: z.literal("count") }),
  z.object({ do: z.literal("sweep"), accountIds: z.array(z.string()) }),
]);
export type Order = z.infer<typeof order>;

/** Told as it happens, so that a killed process keeps nothing back. Times are the row's. */
export const told = z.discriminatedUnion("is", [
  /** A run is about to read the provider. */
  z.object({
    is: z.literal("begun"),
    run: z.string(),
    workType: z.enum(WORK_TYPES),
    accountId: z.string(),
    atMs: z.number(),
  }),
  /** What a run read is stored. A run that failed or was put off is never stored. */
  z.object({ is: z.literal("stored"), run: z.string(), atMs: z.number() }),
  /** A function waited for the provider's limit. */
  z.object({ is: z.literal("slept"), ms: z.number() }),
  /** A worker's function answered. */
  z.object({ is: z.literal("answered"), ms: z.number() }),
]);
export type Told = z.infer<typeof told>;

export const report = z.union([
  told,
  z.object({ is: z.literal("ready") }),
  z.object({ is: z.literal("serving") }),
  z.object({ is: z.literal("counted"), all: z.number(), open: z.number() }),
]);
export type Report = z.infer<typeof report>;
