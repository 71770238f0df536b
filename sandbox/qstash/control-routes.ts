import { z } from "zod";
import { type FaultBoard, faultsSchema } from "@/sandbox/qstash/faults";
import { answer, parseJson, type Route, refusal } from "@/sandbox/qstash/route";
import type { QStashState } from "@/sandbox/qstash/state";
import type { VirtualClock } from "@/sandbox/qstash/virtual-clock";

const clockBody = z.union([
  z.strictObject({ timeScale: z.number().nonnegative() }),
  z.strictObject({ advanceMs: z.number().nonnegative() }),
]);

type Controls = { state(): QStashState; reset(): void; faults: FaultBoard; clock: VirtualClock };

/** What tests steer the emulator with; not part of QStash, and not counted as requests. */
export function controlRoutes({ state, reset, faults, clock }: Controls): Route[] {
  return [
    { method: "GET", pattern: /^\/_sim\/state$/, handle: () => answer(200, state()) },
    {
      method: "POST",
      pattern: /^\/_sim\/reset$/,
      handle: () => {
        reset();
        return answer(200, {});
      },
    },
    {
      method: "POST",
      pattern: /^\/_sim\/faults$/,
      handle: ({ body }) => {
        const parsed = faultsSchema.safeParse(parseJson(body));
        if (!parsed.success) return refusal(400, z.prettifyError(parsed.error));
        faults.set(parsed.data);
        return answer(200, parsed.data);
      },
    },
    {
      method: "POST",
      pattern: /^\/_sim\/clock$/,
      handle: ({ body }) => {
        const parsed = clockBody.safeParse(parseJson(body));
        if (!parsed.success) return refusal(400, "expected {timeScale} or {advanceMs}, a number of 0 or more");
        if ("timeScale" in parsed.data) clock.setScale(parsed.data.timeScale);
        else clock.advance(parsed.data.advanceMs);
        return answer(200, { clockMs: clock.now(), timeScale: clock.scale });
      },
    },
  ];
}
