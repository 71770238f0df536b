import { serve } from "@hono/node-server";
import type { z } from "zod";
import { type Order, order, type Report, type toServe } from "@/bench/child/protocol";
import { watchSleeps } from "@/bench/child/watch-sleeps";
import type { Served } from "@/bench/contestant";
import { contestantName, loadContestant } from "@/bench/contestants/all";
import { wallMs, worldNow } from "@/bench/world/clock";

const MINUTE_MS = 60_000;

/**
 * One contestant as a process of its own, so that its memory and processor time are its own. Its code is loaded before it
 * is told to serve: what takes over from a killed process is warm.
 */
async function main(): Promise<void> {
  let scale = 1;
  const asFunction = watchSleeps((ms) => tell({ is: "slept", ms: ms * scale }));
  const { serveInside } = await loadContestant(contestantName.parse(process.argv[2]));
  let served: Served | undefined;

  async function listen({ port, ...given }: z.infer<typeof toServe>): Promise<void> {
    scale = given.clock.scale;
    const app = await serveInside({ ...given, tell });
    served = app;
    const fetch = async (request: Request) => {
      if (!request.headers.has("upstash-message-id")) return app.answer(request);
      const began = worldNow(given.clock);
      const response = await asFunction(() => app.answer(request));
      tell({ is: "answered", ms: worldNow(given.clock) - began });
      return response;
    };
    const server = serve({ port, hostname: "127.0.0.1", fetch });
    await new Promise<void>((resolve) => (server.listening ? resolve() : server.once("listening", () => resolve())));
    const { tick } = app;
    if (tick !== undefined) setInterval(() => void tick(), wallMs(given.clock, MINUTE_MS));
    tell({ is: "serving" });
  }

  async function obey(given: Order): Promise<void> {
    if (given.do === "serve") await listen(given);
    else if (given.do === "sweep") await served?.sweep(given.accountIds);
    else tell({ is: "counted", ...((await served?.jobs()) ?? { all: 0, open: 0 }) });
  }

  process.on("message", (message) => {
    obey(order.parse(message)).catch((error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    });
  });
  process.on("disconnect", () => process.exit());
  tell({ is: "ready" });
}

function tell(report: Report): void {
  process.send?.(report);
}

await main();
