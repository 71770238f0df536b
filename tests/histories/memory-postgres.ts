import type { Publishable, SyncKey } from "@/lib/domain";
import type { Store } from "@/lib/store/store";
import { MemoryAcceptance } from "@/tests/histories/memory-acceptance";
import { byKey } from "@/tests/histories/memory-tables";

const MINUTE = 60_000;

/**
 * Postgres in memory: what each SQL function of the job protocol does, said again in TypeScript, over an injected clock.
 * The differential test holds it to the functions on a real Postgres, answer by answer. One call is one transaction.
 */
export class MemoryPostgres extends MemoryAcceptance {
  /** The functions that histories call; another one is a history that nobody meant. */
  store(): Store {
    const functions: Partial<Store> = {
      acceptEvent: async (event) => this.acceptEvent(event),
      acceptJobs: async (request) => this.acceptJobs(request),
      begin: async (request) => this.#begin(request),
      commitHoldings: async (request) => this.#commitHoldings(request),
      commitTransactions: async (request) => this.#commitTransactions(request),
      defer: async (request) => this.#defer(request),
      giveBack: async (request) => {
        const job = this.holdFence(request);
        if (job === undefined) return { outcome: "fenced" };
        const next = this.requeue(job, this.now(), false);
        return { outcome: "given_back", publish: next === job ? null : this.handOut(next) };
      },
      fail: async (request) => this.#fail(request),
      close: async (request) => {
        const job = this.holdFence(request);
        if (job === undefined) return { outcome: "fenced" };
        const account = this.account(job);
        if (this.isAnnounced(account, job.startedAt - MINUTE)) {
          return { outcome: "deferred", publish: this.handOut(this.requeue(job, this.now() + MINUTE, false)) };
        }
        account.removedAt ??= job.startedAt;
        this.closeKey(job);
        return { outcome: "gone" };
      },
      republishFailed: async (request) => {
        const job = this.queuedUnder(request);
        if (job === undefined) return { outcome: "overtaken" };
        if (job.attempts >= request.maxAttempts) return { outcome: "dead", publish: this.bury(job) };
        job.dueAt = Math.max(job.dueAt, this.now() + MINUTE);
        return { outcome: "republished", publish: this.handOut(job) };
      },
      takeBackLeases: async (request) => this.#takeBackLeases(request),
      listOverdue: async () => ({ jobs: this.#overdue() }),
      republish: async ({ items }) => {
        const publish = items.toSorted(byKey).flatMap((item) => {
          const job = this.queuedUnder(item);
          if (job === undefined) return [];
          job.republished += 1;
          return [this.handOut(job)];
        });
        return { publish };
      },
      releaseWaiting: async ({ spacingMs }) => this.releaseWaiting(spacingMs),
      usersToList: async () => ({ users: [] }),
      endTick: async () => ({ events: 0, jobs: 0 }),
      replay: async (request) => this.#replay(request),
    };
    return new Proxy(functions, {
      get(target, name: keyof Store) {
        const found = target[name];
        if (found === undefined) throw new Error(`The histories' Postgres has no ${name}`);
        return found;
      },
    }) as Store;
  }

  #begin(request: Parameters<Store["begin"]>[0]): Awaited<ReturnType<Store["begin"]>> {
    const now = this.now();
    let job = this.jobs.find(({ id }) => id === request.jobId);
    if (job === undefined) return { outcome: "unknown" };
    if (this.isFinal(job.status) || job.delivery !== request.delivery) return { outcome: "overtaken" };
    if (this.isGone(job)) {
      if (job.status === "running" && (job.leaseUntil ?? 0) > now) return { outcome: "already_active" };
      this.closeKey(job);
      return { outcome: "gone" };
    }
    const other = this.open(job, "running");
    if (other !== undefined && (other.leaseUntil ?? 0) > now) return { outcome: "already_active" };
    if (other !== undefined && other !== job) this.supersede(other, job);
    if (other !== undefined && job.attempts >= request.maxAttempts) return { outcome: "dead", publish: this.bury(job) };
    const account = this.account(job);
    const readsAccount = this.readsAccount(account, job.workType);
    this.fence += 1;
    job = Object.assign(job, {
      status: "running" as const,
      attempts: job.attempts + 1,
      fence: this.fence,
      startedAt: now,
      leaseUntil: now + request.leaseMs,
      republished: 0,
    });
    account.attemptedAt[job.workType] = now;
    return {
      outcome: "begun",
      fence: this.fence,
      attempts: job.attempts,
      tookOver: other !== undefined,
      userId: account.userId,
      secretCiphertext: this.secretCiphertext,
      readsAccount,
      calls: this.calls(job),
      storedBalances: job.workType === "holdings" && (account.holdings.balances?.length ?? 0) > 0,
      storedPositions: job.workType === "holdings" && (account.holdings.positions?.positions.length ?? 0) > 0,
      storedOrders: job.workType === "holdings" && (account.holdings.orders?.length ?? 0) > 0,
      failedParts: [],
      watermark: account.watermark,
      cursor: account.cursor,
      today: new Date(now).toISOString().slice(0, 10),
    };
  }

  #commitHoldings(request: Parameters<Store["commitHoldings"]>[0]): Awaited<ReturnType<Store["commitHoldings"]>> {
    const job = this.holdFence(request);
    if (job === undefined) return { outcome: "fenced" };
    if (this.isGone(job)) {
      this.closeKey(job);
      return { outcome: "gone" };
    }
    const complete = this.writeParts(job, request.parts);
    if (complete) this.account(job).syncedAt.holdings = job.startedAt;
    return { outcome: "done", complete, publish: this.finish(job) };
  }

  #commitTransactions(
    request: Parameters<Store["commitTransactions"]>[0],
  ): Awaited<ReturnType<Store["commitTransactions"]>> {
    const job = this.holdFence(request);
    if (job === undefined) return { outcome: "fenced" };
    if (this.isGone(job)) {
      this.closeKey(job);
      return { outcome: "gone" };
    }
    this.writeParts(job, request.parts);
    const account = this.account(job);
    for (const row of request.rows) account.transactions.set(row.activityId ?? row.fingerprint, row);
    const began = account.passBeganAt ?? job.startedAt;
    const younger = this.events.some(
      ({ finished, jobIds, receivedAt }) => !finished && jobIds.includes(job.id) && receivedAt >= began,
    );
    account.cursor = request.cursor ?? (younger || job.createdAt >= began ? request.again : null);
    account.passBeganAt = request.cursor === null ? null : began;
    if (account.cursor !== null) {
      account.pages = Math.max(1, request.pagesLeft);
      return { outcome: "page" };
    }
    account.pages = account.watermark === null ? 1 : Math.max(1, request.pages);
    account.watermark = request.watermark ?? account.watermark;
    account.syncedAt.transactions = job.startedAt;
    return { outcome: "done", publish: this.finish(job) };
  }

  #defer(request: Parameters<Store["defer"]>[0]): Awaited<ReturnType<Store["defer"]>> {
    const due = this.now() + request.notBeforeMs;
    if (request.fence === undefined) {
      const queued = this.queuedUnder(request);
      if (queued === undefined) return { outcome: "overtaken" };
      queued.dueAt = Math.max(queued.dueAt, due);
      return { outcome: "deferred", publish: this.handOut(queued) };
    }
    const job = this.holdFence({ ...request, fence: request.fence });
    if (job === undefined) return { outcome: "fenced" };
    this.writeParts(job, request.parts ?? {});
    return { outcome: "deferred", publish: this.handOut(this.requeue(job, due, false)) };
  }

  #fail(request: Parameters<Store["fail"]>[0]): Awaited<ReturnType<Store["fail"]>> {
    const job = this.holdFence(request);
    if (job === undefined) return { outcome: "fenced" };
    this.writeParts(job, request.parts);
    if (request.permanent || job.attempts >= request.maxAttempts) return { outcome: "dead", publish: this.bury(job) };
    job.failed = { at: this.now(), status: request.status };
    const patience = [400, 401, 403].includes(request.status) ? 60 * MINUTE : 0;
    const delay = Math.max(Math.min(MINUTE * 2 ** (job.attempts - 1), 360 * MINUTE), patience);
    return { outcome: "failed", publish: this.handOut(this.requeue(job, this.now() + delay, true)) };
  }

  #takeBackLeases({ maxAttempts }: { maxAttempts: number }) {
    const past = this.jobs.filter((job) => job.status === "running" && (job.leaseUntil ?? 0) < this.now());
    const answer = { taken: past.length, dead: [] as (SyncKey & { jobId: string })[], publish: [] as Publishable[] };
    for (const job of past.toSorted((a, b) => (a.leaseUntil ?? 0) - (b.leaseUntil ?? 0))) {
      if (job.attempts >= maxAttempts) {
        const trailing = this.bury(job);
        answer.dead.push({ jobId: job.id, workType: job.workType, accountId: job.accountId });
        if (trailing !== null) answer.publish.push(trailing);
      } else {
        this.requeue(job, this.now(), true).publishedAt = null;
      }
    }
    return answer;
  }

  /** Postgres counts microseconds: what became due in this millisecond is due there by the next call. */
  #overdue() {
    const now = this.now();
    return this.jobs
      .filter((job) => job.status === "queued" && job.dueAt <= now)
      .map((job) => ({
        job,
        graceMs: 30_000 * 2 ** Math.min(job.republished, 4),
        unpublished: job.delivery === 0 || job.publishedAt === null,
      }))
      .filter(
        ({ job, graceMs, unpublished }) => unpublished || Math.max(job.dueAt, job.publishedAt ?? 0) < now - graceMs,
      )
      .filter(({ job }) => !((this.open(job, "running")?.leaseUntil ?? 0) > now))
      .toSorted((a, b) => a.job.createdAt - b.job.createdAt || (a.job.id < b.job.id ? -1 : 1))
      .map(({ job, graceMs, unpublished }) => ({
        jobId: job.id,
        workType: job.workType,
        accountId: job.accountId,
        delivery: job.delivery,
        calls: this.calls(job),
        createdAt: new Date(job.createdAt).toISOString(),
        graceMs,
        unpublished,
      }));
  }

  #replay({ items }: Parameters<Store["replay"]>[0]) {
    const answer = { publish: [] as Publishable[], superseded: [] as string[], notDead: [] as string[] };
    for (const { jobId } of items.toSorted(byKey)) {
      const job = this.jobs.find(({ id, status }) => id === jobId && status === "dead");
      if (job === undefined) {
        answer.notDead.push(jobId);
      } else if (this.open(job, "queued") !== undefined) {
        job.status = "superseded";
        answer.superseded.push(jobId);
      } else {
        const fresh = { attempts: 0, failed: null, pulledAttempt: null, republished: 0, dueAt: this.now() };
        Object.assign(job, { ...fresh, status: "queued" });
        this.readNewestAgain(job);
        if (this.open(job, "running") === undefined) answer.publish.push(this.handOut(job));
      }
    }
    return answer;
  }
}
