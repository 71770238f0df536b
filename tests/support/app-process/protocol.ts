import { z } from "zod";
import { RACE_POINTS } from "@/lib/service";

/** What the test tells the process; each order is answered by `done` once it has effect, in order. */
export const order = z.discriminatedUnion("do", [
  /** `aheadMs`: how far the stepped time is ahead of the machine's; Redis is told it. */
  z.object({
    do: z.literal("serve"),
    port: z.number(),
    env: z.record(z.string(), z.string()),
    aheadMs: z.number(),
  }),
  z.object({ do: z.literal("step"), aheadMs: z.number() }),
  /** The `nth` one from now that reaches the point dies there by SIGKILL, or waits there for `release`. */
  z.object({ do: z.literal("at"), point: z.enum(RACE_POINTS), act: z.enum(["die", "hold"]), nth: z.number() }),
  z.object({ do: z.literal("release") }),
  /** Answered when everything that ran after a response has ended. */
  z.object({ do: z.literal("settle") }),
]);
export type Order = z.infer<typeof order>;

export const report = z.discriminatedUnion("is", [
  /** The code is loaded. */
  z.object({ is: z.literal("ready") }),
  z.object({ is: z.literal("done") }),
  z.object({ is: z.literal("held"), point: z.enum(RACE_POINTS) }),
]);
export type Report = z.infer<typeof report>;
