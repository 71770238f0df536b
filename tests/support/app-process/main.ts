import { serve } from "@hono/node-server";
import { createService, guardContext } from "@/lib/composition";
import { parseEnv } from "@/lib/env";
import type { RacePoint } from "@/lib/service";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { type Order, order, type Report } from "@/tests/support/app-process/protocol";
import { type AppRoutes, appRoutes } from "@/tests/support/app-routes";

/** Patient, so that a busy machine does not look like a Redis that is away. */
const REDIS_TIMEOUT_MS = 15_000;

/** The service as a process of its own, which a test steers by messages and which dies where it is told to. */
function main(): void {
  let aheadMs = 0;
  let routes: AppRoutes | undefined;
  let armed: Extract<Order, { do: "at" }>[] = [];
  let release = () => {};

  async function reach(point: RacePoint): Promise<void> {
    const found = armed.find((each) => each.point === point);
    if (found === undefined) return;
    found.nth -= 1;
    if (found.nth > 0) return;
    armed = armed.filter((each) => each !== found);
    if (found.act === "die") process.kill(process.pid, "SIGKILL");
    await new Promise<void>((resolve) => {
      release = resolve;
      tell({ is: "held", point });
    });
  }

  async function listen({ port, env }: Extract<Order, { do: "serve" }>): Promise<void> {
    const parsed = parseEnv(env);
    if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
    const service = createService(parsed.env, { reach });
    const guards = guardContext(service.env, service.logger, REDIS_TIMEOUT_MS);
    service.guards = createGuards({ ...guards, clock: () => Date.now() + aheadMs });
    routes = appRoutes(service);
    const server = serve({ port, hostname: "127.0.0.1", fetch: routes.answer });
    await new Promise<void>((resolve) => (server.listening ? resolve() : server.once("listening", () => resolve())));
  }

  async function obey(given: Order): Promise<void> {
    if ("aheadMs" in given) aheadMs = given.aheadMs;
    if (given.do === "serve") await listen(given);
    if (given.do === "at") armed.push(given);
    if (given.do === "release") release();
    if (given.do === "settle") await routes?.settled();
    tell({ is: "done" });
  }

  process.on("message", (message) => void obey(order.parse(message)));
  process.on("disconnect", () => process.exit());
  tell({ is: "ready" });
}

function tell(report: Report): void {
  process.send?.(report);
}

main();
