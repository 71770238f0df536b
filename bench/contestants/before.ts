import { startChild } from "@/bench/child/start-child";
import type { Contestant, Inside, Served } from "@/bench/contestant";
import { plainPublisher, plainRoutes } from "@/bench/contestants/plain-routes";
import { createPlainWorker } from "@/bench/contestants/plain-worker";
import { sleepingProvider } from "@/bench/contestants/sleeping-provider";
import { parseEnv } from "@/lib/env";

export const contestant: Contestant = {
  name: "before",
  reason:
    "What production did before the incident: a job for each event, QStash at 200/200, sleeping on 429 inside the worker " +
    "as the SDK does (5 + 10 + 20 s), then QStash's three retries. Kinder than it was: a redelivered event makes no " +
    "second job, no function is ended by a time limit, and the worker's reading and storing code is this service's.",
  share: 1,
  spacingMs: 0,
  serveInside,
  start: (parts) => startChild("before", parts),
};

async function serveInside(inside: Inside): Promise<Served> {
  const parsed = parseEnv(inside.env);
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const worker = createPlainWorker(inside, parsed.env, sleepingProvider(inside));
  const publish = plainPublisher(parsed.env, { parallelism: 200, rate: 200 });
  return plainRoutes(inside, parsed.env, {
    async take(event) {
      const { isNew, jobs } = await worker.takeEvent(event);
      await publish(jobs);
      return isNew ? "accepted" : "duplicate";
    },
    work: worker.run,
    sweep: async (accountIds) => publish(await worker.makeJobs(accountIds)),
  });
}
