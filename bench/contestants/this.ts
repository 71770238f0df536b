import postgres from "postgres";
import { startChild } from "@/bench/child/start-child";
import type { Contestant, Inside, Served } from "@/bench/contestant";
import { wallMs, worldNow } from "@/bench/world/clock";
import { createService, guardContext } from "@/lib/composition";
import type { SyncKey } from "@/lib/domain";
import { parseEnv } from "@/lib/env";
import { createLogger } from "@/lib/log";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import type { Begun } from "@/lib/store/answers";
import type { Store } from "@/lib/store/store";
import { CRON_PATHS } from "@/sandbox/stack/crons";
import { appRoutes } from "@/tests/support/app-routes";

export const contestant: Contestant = {
  name: "this",
  reason:
    "This service with its defaults. Its routes' handlers over a plain HTTP server and not the built app: a build has no " +
    "seam for the row's clock, and what Next.js adds to a request is the same for all and measured by bench:intake. " +
    "Reconcile is called each minute, as vercel.json has it.",
  share: 0.75,
  spacingMs: 10_000,
  serveInside,
  start: (parts) => startChild("this", parts),
};

/** The service as it is; its clocks are the row's, and its store tells of runs on the way. */
async function serveInside({ env, clock, databaseUrl, tell }: Inside): Promise<Served> {
  const parsed = parseEnv(env);
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const now = () => worldNow(clock);
  const logger = createLogger({ secrets: parsed.env.secrets });
  const service = createService(parsed.env, {
    logger,
    clock: now,
    guards: createGuards({ ...guardContext(parsed.env, logger), clock: now }),
    deadline: (ms) => AbortSignal.timeout(wallMs(clock, ms)),
  });
  service.store = telling(service.store, tell, now);
  const routes = appRoutes(service);
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  const cron = async (path: string) => {
    const headers = { Authorization: `Bearer ${parsed.env.cronSecret}` };
    await routes.answer(new Request(`${parsed.env.appUrl}${path}`, { headers }));
  };
  return {
    answer: routes.answer,
    tick: () => cron(CRON_PATHS.reconcile),
    // The service finds the stale ones itself.
    sweep: () => cron(CRON_PATHS.sweep),
    async jobs() {
      const [row] = await sql`
        select count(*)::int as all, count(*) filter (where status in ('queued', 'running'))::int as open
        from snaptrade_sync_jobs`;
      return { all: Number(row?.all), open: Number(row?.open) };
    },
  };
}

function telling(store: Store, tell: Inside["tell"], now: () => number): Store {
  const began = ({ workType, accountId }: SyncKey, begun: Begun) =>
    tell({ is: "begun", run: String(begun.fence), workType, accountId, atMs: now() });
  return {
    ...store,
    async begin(request) {
      const begun = await store.begin(request);
      if (begun.outcome === "begun") began(request, begun);
      return begun;
    },
    async commitHoldings(request) {
      const committed = await store.commitHoldings(request);
      if (committed.outcome === "done") tell({ is: "stored", run: String(request.fence), atMs: now() });
      return committed;
    },
    async commitTransactions(request) {
      const committed = await store.commitTransactions(request);
      if (committed.outcome === "done") tell({ is: "stored", run: String(request.fence), atMs: now() });
      return committed;
    },
  };
}
