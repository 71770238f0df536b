import type { JobMessage, Publishable, SyncKey } from "@/lib/domain";
import { publishJobs } from "@/lib/jobs/publish-jobs";
import type { ReadEnd } from "@/lib/jobs/run-end";
import type { RunOutcome } from "@/lib/jobs/worker-answer";
import { field } from "@/lib/metrics/metric-names";
import type { Service } from "@/lib/service";
import type { Counts, SlotId } from "@/lib/snaptrade-webhook-guards";
import type { Begun } from "@/lib/store/answers";

/** One delivery in progress: what it holds and what it has counted so far. */
export type Run = {
  job: JobMessage;
  /** The owner token of its lock. */
  token: string;
  startedAt: number;
  counts: Counts;
  /** What it may still call, of a slot of this time: what is left at a quick end goes back to the budget. */
  calls: { left: number; slotAt: number };
};

export type Committed = { outcome: RunOutcome; publish: Publishable | null };

/** The one write that ends a run, under its fence (I4): what was read, what becomes of the job, what is published next. */
export async function commitReading(service: Service, run: Run, begun: Begun, read: ReadEnd): Promise<Committed> {
  const { store, logger } = service;
  const { job, counts } = run;
  const { jobId, workType, accountId } = job;
  const fenced = { jobId, workType, accountId, fence: begun.fence };
  switch (read.kind) {
    case "read": {
      const done = await store.commitHoldings({ ...fenced, parts: read.parts });
      if (done.outcome === "done") return { outcome: "done", publish: done.publish };
      return { outcome: done.outcome === "gone" ? "gone" : "overtaken", publish: null };
    }
    case "committed":
      return { outcome: "done", publish: read.publish };
    case "defer": {
      const { reason, notBeforeMs, parts } = read;
      const deferred = await store.defer({ ...job, fence: begun.fence, notBeforeMs, parts });
      if (deferred.outcome !== "deferred") return { outcome: "overtaken", publish: null };
      counts[field("jobs_deferred", reason)] = 1;
      logger.info({ ...job, reason, notBeforeMs }, "Job deferred");
      return { outcome: "deferred", publish: deferred.publish };
    }
    case "fail": {
      const { status, reason, permanent, parts } = read;
      const maxAttempts = service.env.limits.jobMaxAttempts;
      const failed = await store.fail({ ...fenced, error: reason, status, permanent, maxAttempts, parts });
      if (failed.outcome === "fenced") return { outcome: "overtaken", publish: null };
      if (status === 400 || status === 401 || status === 403) await reportRefusal(service, status, reason);
      if (failed.outcome === "dead") reportDead(service, job, reason);
      else logger.warn({ ...job, status, reason, attempts: begun.attempts }, "Attempt failed");
      return failed;
    }
    case "gone": {
      const closed = await store.close(fenced);
      if (closed.outcome === "deferred") {
        logger.warn(job, "SnapTrade answered 404 for an account that was just announced: asked again in a minute");
        return closed;
      }
      if (closed.outcome === "fenced") return { outcome: "overtaken", publish: null };
      logger.info(job, "SnapTrade no longer knows the account; it is closed, with its jobs of this work type");
      return { outcome: "gone", publish: null };
    }
    case "account_gone":
      return { outcome: "gone", publish: null };
    case "fenced":
      return { outcome: "overtaken", publish: null };
  }
}

export type RunResult = Committed & { began: boolean; unused?: SlotId | null };

/**
 * Finally: the lock (and of a run that began the queued key) is released if ours, in the round trip that reserves the slot
 * of the job published next; then that job is published.
 */
export async function endRun(service: Service, run: Run, result: RunResult): Promise<RunOutcome> {
  const { job } = run;
  const { outcome } = result;
  const publish = result.publish === null ? [] : [result.publish];
  const waits = await service.guards.releaseAccountLock({
    job,
    token: run.token,
    began: result.began,
    closed: outcome === "gone",
    unused: result.unused ?? null,
    unmade: { calls: Math.max(0, run.calls.left), slotAt: run.calls.slotAt },
    publish,
    counts: {
      ...run.counts,
      [field("runs", outcome)]: 1,
      ...(outcome === "already_active" ? { [field("active_lock_skips")]: 1 } : {}),
    },
  });
  await service.reach("run:released");
  service.logger.info({ ...job, outcome, ms: service.clock() - run.startedAt }, "Run ended");
  await publishJobs(service, publish, waits);
  await service.reach("run:published");
  return outcome;
}

/** One alert a wave: our credentials or requests are at fault, and so every account fails alike. */
async function reportRefusal(service: Service, status: number, reason: string): Promise<void> {
  const alert = "provider_unauthorized";
  if (!(await service.guards.claimAlert(alert))) return;
  service.logger.error({ status, reason, alert }, "SnapTrade refuses our requests: check the client id and its keys");
}

/** One alert a dead job. */
export function reportDead(service: Service, job: SyncKey & { jobId: string }, reason: string): void {
  service.logger.error({ ...job, reason, alert: "job_dead" }, "Job dead: replay it once the reason is mended");
}
