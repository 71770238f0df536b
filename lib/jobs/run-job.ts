import type { JobMessage } from "@/lib/domain";
import { isAway } from "@/lib/guards/redis-scripts";
import { commitReading, endRun, type Run, reportDead } from "@/lib/jobs/end-run";
import { leftOf, publishJobs } from "@/lib/jobs/publish-jobs";
import { publishOverdue } from "@/lib/jobs/publish-overdue";
import { type Reading, readHoldings } from "@/lib/jobs/read-holdings";
import { readTransactions } from "@/lib/jobs/read-transactions";
import { type LimitWatch, watchLimits } from "@/lib/jobs/watch-limits";
import type { RunOutcome } from "@/lib/jobs/worker-answer";
import { field } from "@/lib/metrics/metric-names";
import { decryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";
import type { Admission } from "@/lib/snaptrade-webhook-guards";
import type { Begun } from "@/lib/store/answers";
import { StoreError } from "@/lib/store/call-function";
import { RUN_DEADLINE_MS, RUN_LEASE_MS } from "@/lib/timings";

export type Delivery = { job: JobMessage; retried: number; messageId: string | null };

/** What a delivery without a known slot may call before it asks for more: holdings' three parts, one page. */
const CALLS_WITHOUT_A_SLOT = { holdings: 3, transactions: 1 };

/**
 * One delivery of a job: admit, begin, unqueue, read, commit, finally (ARCHITECTURE.md, A run). Redis says when a run may
 * begin to read, Postgres whether it may; without a positive answer of both nothing is read. Never sleeps: what cannot go on
 * now is put back with a delay.
 */
export async function runJob(service: Service, delivery: Delivery): Promise<RunOutcome> {
  const { job, retried } = delivery;
  const calls = { left: 0, slotAt: 0 };
  const run: Run = { job, token: service.newId(), startedAt: service.clock(), counts: {}, calls };
  const signal = service.deadline(RUN_DEADLINE_MS);
  const admit = (replace: boolean) =>
    service.guards.claimAccountLock({
      job,
      retried,
      token: run.token,
      replace,
      calls: CALLS_WITHOUT_A_SLOT[job.workType],
      counts: retried > 0 && !replace ? { [field("qstash_retries")]: 1 } : {},
    });

  let admitted = await admit(false);
  const toldAt = service.clock();
  await service.reach("run:admitted");
  if (isAway(admitted)) return "redis_away";
  if (admitted.kind === "defer") return deferBeforeBegin(service, job, admitted, toldAt);

  const begun = await service.store.begin({
    ...job,
    messageId: delivery.messageId,
    leaseMs: RUN_LEASE_MS,
    maxAttempts: service.env.limits.jobMaxAttempts,
  });
  await service.reach("run:begun");
  if (begun.outcome !== "begun") {
    const reserved = admitted.kind === "go" && admitted.reserved;
    const outcome = begun.outcome === "unknown" ? "overtaken" : begun.outcome;
    if (begun.outcome === "already_active") service.logger.info(job, "already active for account");
    if (begun.outcome === "dead") reportDead(service, job, "the last attempt did not end within its lease");
    return endRun(service, run, {
      outcome,
      // A job that is closed must not stand behind the queued key: it covers no event any more.
      began: outcome === "gone" || outcome === "dead",
      publish: begun.outcome === "dead" ? begun.publish : null,
      unused: reserved ? { jobId: job.jobId, delivery: job.delivery, retried } : null,
    });
  }

  // Postgres let a run begin whose lock another one seems to hold: that one is past its lease, or Redis lost track.
  if (admitted.kind === "held") {
    admitted = await admit(true);
    await service.reach("run:readmitted");
  }
  if (isAway(admitted) || admitted.kind === "held") return giveBack(service, run, begun);
  if (admitted.kind === "defer") {
    const { waitMs, notBeforeMs, reason } = admitted;
    const deferred = await service.store.defer({ ...job, fence: begun.fence, notBeforeMs });
    await service.reach("run:deferred");
    service.logger.info({ ...job, waitMs, reason }, "Job deferred");
    return endRun(service, run, {
      outcome: "deferred",
      began: true,
      publish: deferred.outcome === "deferred" ? deferred.publish : null,
    });
  }
  if (!(await service.guards.clearAccountQueued(job))) return giveBack(service, run, begun);
  await service.reach("run:unqueued");
  const watch = watchLimits(service, job.accountId, admitted.limit);
  run.calls = { left: admitted.calls, slotAt: admitted.slotAt };
  const outcome = await readAndCommit(service, run, begun, watch, signal);
  // What was cut for the lower limit has lost its slots, and its messages would come at the lower limit's pace.
  if (watch.rose()) await publishOverdue(service, () => service.clock() - run.startedAt < RUN_DEADLINE_MS);
  return outcome;
}

async function readAndCommit(
  service: Service,
  run: Run,
  begun: Begun,
  watch: LimitWatch,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const { job } = run;
  run.counts = watch.counts;
  try {
    const { userId } = begun;
    const userSecret = decryptSecret(begun.secretCiphertext ?? "", service.env.snaptrade.secretsKeys, userId);
    const reading: Reading = {
      accountId: job.accountId,
      user: { userId, userSecret },
      begun,
      calls: run.calls,
      watch,
      signal,
    };
    const read =
      job.workType === "holdings"
        ? await readHoldings(service, reading)
        : await readTransactions(service, reading, job.jobId);
    await service.reach("run:read");
    const ended = await commitReading(service, run, begun, read);
    await service.reach("run:committed");
    return endRun(service, run, { ...ended, began: true });
  } catch (error) {
    // Postgres away: the lease ends the run. Anything else is a failed attempt, so that it cannot repeat for ever.
    service.logger.error({ ...job, error }, "Run failed unexpectedly");
    if (error instanceof StoreError && error.away) {
      return endRun(service, run, { outcome: "postgres_away", began: true, publish: null });
    }
    const reason = `unexpected: ${error instanceof Error ? error.message.slice(0, 500) : "no error"}`;
    const failed = await commitReading(service, run, begun, {
      kind: "fail",
      status: 0,
      reason,
      permanent: false,
      parts: {},
    });
    const outcome = failed.outcome === "failed" ? "unexpected" : failed.outcome;
    return endRun(service, run, { ...failed, outcome, began: true });
  }
}

/** Not admitted: the same job under its next delivery, where its slot is. An older delivery gives the slot back. */
async function deferBeforeBegin(
  service: Service,
  job: JobMessage,
  admitted: Extract<Admission, { kind: "defer" }>,
  toldAt: number,
): Promise<RunOutcome> {
  const { waitMs, reason, reserved, notBeforeMs } = admitted;
  const deferred = await service.store.defer({ ...job, notBeforeMs });
  await service.reach("run:deferred");
  if (deferred.outcome !== "deferred") {
    const unused = reserved ? [{ jobId: job.jobId, delivery: job.delivery + 1, retried: 0 }] : [];
    await service.guards.giveBackSlots(unused, {
      [field("runs", "overtaken")]: 1,
      // Admission took it for a deferral, and counted it so.
      [field("runs", "deferred")]: -1,
      [field("jobs_deferred", reason)]: -1,
    });
    return "overtaken";
  }
  service.logger.info({ ...job, waitMs, reason }, "Job deferred");
  await publishJobs(service, [deferred.publish], [leftOf(service, waitMs, toldAt)]);
  return "deferred";
}

/** Redis gave no positive answer: the run reads nothing, spends no attempt, and its delivery comes again. */
async function giveBack(service: Service, run: Run, begun: Begun): Promise<RunOutcome> {
  const { jobId, workType, accountId } = run.job;
  const given = await service.store.giveBack({ jobId, workType, accountId, fence: begun.fence });
  await service.reach("run:given-back");
  const publish = given.outcome === "given_back" ? given.publish : null;
  return endRun(service, run, { outcome: "redis_away", began: true, publish });
}
