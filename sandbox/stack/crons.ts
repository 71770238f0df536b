import { setTimeout as sleep } from "node:timers/promises";

export const CRON_PATHS = {
  sweep: "/api/cron/schedule-stale-snaptrade",
  reconcile: "/api/cron/reconcile-snaptrade",
} as const;

const MINUTE_MS = 60_000;
const SWEEP_EVERY_MINUTES = 15;

/** Calls one cron route as Vercel does; the status, or 0 when the app did not answer. */
export async function callCron(appUrl: string, path: string, cronSecret: string): Promise<number> {
  try {
    const response = await fetch(`${appUrl}${path}`, {
      headers: { authorization: `Bearer ${cronSecret}` },
      signal: AbortSignal.timeout(MINUTE_MS),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return 0;
  }
}

/** Calls the crons at full minutes, as `vercel.json` has them, until stopped. */
export function runCrons(call: (path: string) => Promise<number>): () => void {
  const stop = new AbortController();
  const tick = async (path: string) => {
    const status = await call(path);
    if (status !== 200 && !stop.signal.aborted) process.stderr.write(`Cron ${path} answered ${status}.\n`);
  };
  const run = async () => {
    for (;;) {
      // A little later, because a timer may be early, and the same minute would come twice.
      await sleep(MINUTE_MS + 20 - (Date.now() % MINUTE_MS), undefined, { signal: stop.signal });
      void tick(CRON_PATHS.reconcile);
      if (new Date().getUTCMinutes() % SWEEP_EVERY_MINUTES === 0) void tick(CRON_PATHS.sweep);
    }
  };
  run().catch(() => undefined); // ends by the abort alone
  return () => stop.abort();
}
