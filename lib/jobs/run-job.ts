import type { JobMessage, Publishable } from "@/lib/domain";
import { AWAY, isAway } from "@/lib/guards/redis-scripts";
import { publishJobs } from "@/lib/jobs/publish-jobs";
import { type Reading, readHoldings } from "@/lib/jobs/read-holdings";
import { readTransactions } from "@/lib/jobs/read-transactions";
import type { ReadEnd } from "@/lib/jobs/run-end";
import { watchLimits } from "@/lib/jobs/watch-limits";
import type { RunOutcome } from "@/lib/jobs/worker-answer";
import { field } from "@/lib/metrics/metric-names";
import { decryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";
import type { Admission, Counts, SlotId } from "@/lib/snaptrade-webhook-guards";
import type { Begun } from "@/lib/store/answers";
import { StoreError } from "@/lib/store/call-function";
import { RUN_DEADLINE_MS, RUN_LEASE_MS } from "@/lib/timings";

export type Delivery = { job: JobMessage; retried: number; messageId: string | null };
type Go = Extract<Admission, { kind: "go" }>;

/** What a delivery without a known slot may call before it asks for more: holdings' three parts, one page. */
const CALLS_WITHOUT_A_SLOT = { holdings: 3, transactions: 1 };

/**
 * One delivery of a job: admit, begin, unqueue, read, commit, finally (design: a run). Redis says when a run may begin to
 * read, Postgres whether it may; without a positive answer of both nothing is read. Never sleeps: what cannot go on now is
 * put back with a delay.
 */
export async function runJob(service: Service, delivery: Delivery): Promise<RunOutcome> {
  const { job, retried } = delivery;
  const token = service.newId();
  const signal = service.deadline(RUN_DEADLINE_MS);
  const admit = (replace: boolean) =>
    service.guards.claimAccountLock({
      job,
      retried,
      token,
      replace,
      calls: CALLS_WITHOUT_A_SLOT[job.workType],
      counts: retried > 0 && !replace ? { [field("qstash_retries")]: 1 } : {},
    });

  let admitted = await admit(false);
  await service.reach("run:admitted");
  if (isAway(admitted)) return "redis_away";
  if (admitted.kind === "defer") return deferBeforeBegin(service, job, admitted);

  const begun = await service.store.begin({
    ...job,
    messageId: delivery.messageId,
    leaseMs: RUN_LEASE_MS,
    maxAttempts: service.env.limits.jobMaxAttempts,
  });
  await service.reach("run:begun");
  if (begun.outcome !== "begun") {
    const unused =
      admitted.kind === "go" && admitted.reserved ? { jobId: job.jobId, delivery: job.delivery, retried } : null;
    if (begun.outcome === "already_active") service.logger.info(job, "already active for account");
    if (begun.outcome === "dead") alertDead(service, job, "the last attempt did not end within its lease");
    const publish = begun.outcome === "dead" && begun.publish !== null ? [begun.publish] : [];
    const outcome = begun.outcome === "unknown" ? "overtaken" : begun.outcome;
    await end(service, job, { token, began: false, unused, publish, counts: {}, outcome });
    return outcome;
  }

  // Postgres let a run begin whose lock another one seems to hold: that one is past its lease, or Redis lost track.
  if (admitted.kind === "held") admitted = await admit(true);
  if (isAway(admitted) || admitted.kind === "held") return giveBack(service, job, begun, token);
  if (admitted.kind === "defer") {
    const { waitMs, notBeforeMs, reason } = admitted;
    const deferred = await service.store.defer({ ...job, fence: begun.fence, notBeforeMs });
    service.logger.info({ ...job, waitMs, reason }, "Job deferred");
    const publish = deferred.outcome === "deferred" ? [deferred.publish] : [];
    await end(service, job, { token, began: true, unused: null, publish, counts: {}, outcome: "deferred" });
    return "deferred";
  }
  if (!(await service.guards.clearAccountQueued(job))) return giveBack(service, job, begun, token);
  await service.reach("run:unqueued");
  return read(service, job, begun, admitted, token, signal);
}

async function read(
  service: Service,
  job: JobMessage,
  begun: Begun,
  admitted: Go,
  token: string,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const watch = watchLimits(service, job.accountId, admitted.limit);
  let ended: { outcome: RunOutcome; publish: Publishable | null };
  try {
    const reading: Reading = {
      accountId: job.accountId,
      user: {
        userId: begun.userId,
        userSecret: decryptSecret(begun.secretCiphertext ?? "", service.env.snaptrade.secretsKeys, begun.userId),
      },
      begun,
      calls: { left: admitted.calls },
      watch,
      signal,
    };
    const readEnd =
      job.workType === "holdings"
        ? await readHoldings(service, reading)
        : await readTransactions(service, reading, job.jobId);
    await service.reach("run:read");
    ended = await commit(service, job, begun, readEnd, watch.counts);
  } catch (error) {
    // Postgres away: the lease ends the run. Anything else is a failed attempt, so that it cannot repeat for ever.
    service.logger.error({ ...job, error }, "Run failed unexpectedly");
    if (error instanceof StoreError && error.away) {
      await end(service, job, {
        token,
        began: true,
        unused: null,
        publish: [],
        counts: watch.counts,
        outcome: "postgres_away",
      });
      return "postgres_away";
    }
    const reason = error instanceof Error ? error.message.slice(0, 500) : "unknown";
    const failed = await commit(
      service,
      job,
      begun,
      { kind: "fail", status: 0, reason: `unexpected: ${reason}`, permanent: false, parts: {} },
      watch.counts,
    );
    ended = { ...failed, outcome: failed.outcome === "failed" ? "unexpected" : failed.outcome };
  }
  await service.reach("run:committed");
  const publish = ended.publish === null ? [] : [ended.publish];
  await end(service, job, { token, began: true, unused: null, publish, counts: watch.counts, outcome: ended.outcome });
  return ended.outcome;
}

/** The one write that ends a run, under its fence (I4): what was read, what becomes of the job, what is published next. */
async function commit(
  service: Service,
  job: JobMessage,
  begun: Begun,
  readEnd: ReadEnd,
  counts: Counts,
): Promise<{ outcome: RunOutcome; publish: Publishable | null }> {
  const { store, logger } = service;
  const { jobId, workType, accountId } = job;
  const fenced = { jobId, workType, accountId, fence: begun.fence };
  switch (readEnd.kind) {
    case "read": {
      const done = await store.commitHoldings({ ...fenced, parts: readEnd.parts });
      if (done.outcome === "done") return { outcome: "done", publish: done.publish };
      return { outcome: done.outcome === "gone" ? "gone" : "overtaken", publish: null };
    }
    case "committed":
      return { outcome: "done", publish: readEnd.publish };
    case "defer": {
      const { reason, notBeforeMs, parts } = readEnd;
      const deferred = await store.defer({ ...job, fence: begun.fence, notBeforeMs, parts });
      counts[field("jobs_deferred", reason)] = 1;
      logger.info({ ...job, reason, notBeforeMs }, "Job deferred");
      return deferred.outcome === "deferred"
        ? { outcome: "deferred", publish: deferred.publish }
        : { outcome: "overtaken", publish: null };
    }
    case "fail": {
      const { status, reason, permanent, parts } = readEnd;
      const maxAttempts = service.env.limits.jobMaxAttempts;
      const failed = await store.fail({ ...fenced, error: reason, status, permanent, maxAttempts, parts });
      if (failed.outcome === "fenced") return { outcome: "overtaken", publish: null };
      if (failed.outcome === "dead") alertDead(service, job, reason);
      else logger.warn({ ...job, status, reason, attempts: begun.attempts }, "Attempt failed");
      return { outcome: failed.outcome, publish: failed.publish };
    }
    case "gone": {
      const closed = await store.close(fenced);
      logger.info(job, "SnapTrade no longer knows the account; its job is closed");
      return { outcome: closed.outcome === "gone" ? "gone" : "overtaken", publish: null };
    }
    case "fenced":
      return { outcome: "overtaken", publish: null };
  }
}

/** Not admitted: the same job under its next delivery, where its slot is. An older delivery gives the slot back. */
async function deferBeforeBegin(
  service: Service,
  job: JobMessage,
  admitted: Extract<Admission, { kind: "defer" }>,
): Promise<RunOutcome> {
  const deferred = await service.store.defer({ ...job, notBeforeMs: admitted.notBeforeMs });
  if (deferred.outcome !== "deferred") {
    const unused: SlotId[] = admitted.reserved ? [{ jobId: job.jobId, delivery: job.delivery + 1, retried: 0 }] : [];
    await service.guards.giveBackSlots(unused, { [field("runs", "overtaken")]: 1 });
    return "overtaken";
  }
  service.logger.info({ ...job, waitMs: admitted.waitMs, reason: admitted.reason }, "Job deferred");
  await publishJobs(service, [deferred.publish], [admitted.waitMs]);
  return "deferred";
}

/** Redis gave no positive answer: the run reads nothing, spends no attempt, and its delivery comes again. */
async function giveBack(service: Service, job: JobMessage, begun: Begun, token: string): Promise<RunOutcome> {
  const { jobId, workType, accountId } = job;
  const given = await service.store.giveBack({ jobId, workType, accountId, fence: begun.fence });
  const publish = given.outcome === "given_back" && given.publish !== null ? [given.publish] : [];
  await end(service, job, { token, began: true, unused: null, publish, counts: {}, outcome: "redis_away" });
  return "redis_away";
}

type End = {
  token: string;
  began: boolean;
  unused: SlotId | null;
  publish: Publishable[];
  counts: Counts;
  outcome: RunOutcome;
};

async function end(service: Service, job: JobMessage, given: End): Promise<void> {
  const { outcome, counts, ...rest } = given;
  const waits = await service.guards.releaseAccountLock({
    job,
    ...rest,
    counts: {
      ...counts,
      [field("runs", outcome)]: 1,
      ...(outcome === "already_active" ? { [field("active_lock_skips")]: 1 } : {}),
    },
  });
  await service.reach("run:released");
  await publishJobs(service, given.publish, isAway(waits) ? AWAY : waits);
  await service.reach("run:published");
}

function alertDead(service: Service, job: JobMessage, reason: string): void {
  service.logger.error({ ...job, reason, alert: "job_dead" }, "Job dead: replay it once the reason is mended");
}
