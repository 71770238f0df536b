import type { Publishable, SyncKey } from "@/lib/domain";
import type { AcceptEventAnswer } from "@/lib/store/answers";
import type { EventRow, Store } from "@/lib/store/store";
import { byKey, type MemoryAccount, type MemoryJob, MemoryTables } from "@/tests/histories/memory-tables";

type Pull = "none" | "event" | "at_once";
type Accepted = { jobId: string; isNew: boolean; dueInMs: number; publish: Publishable | null };

const MINUTE = 60_000;

/** How events and lists of keys become jobs: supabase/migrations/20260504 and 20260505, said again. */
export class MemoryAcceptance extends MemoryTables {
  acceptEvent(event: EventRow & { spacingMs: number }): AcceptEventAnswer {
    const row = this.events.find(({ webhookId }) => webhookId === event.webhookId);
    if (row !== undefined) {
      const [only, ...more] = row.jobIds;
      const job = more.length > 0 ? undefined : this.jobs.find(({ id }) => id === only);
      const queued =
        job?.status === "queued" && !this.isHalfRead(job) ? { jobId: job.id, dueInMs: this.dueIn(job) } : null;
      return { outcome: "duplicate", jobIds: row.jobIds, publish: [], differs: false, queued };
    }
    const taken = this.#takeEvent(event);
    this.events.push({
      row: event,
      webhookId: event.webhookId,
      outcome: taken.outcome,
      processed: taken.outcome === "accepted",
      jobIds: taken.jobIds,
      receivedAt: this.now(),
      finished: taken.outcome === "ignored" || (taken.jobIds.length === 0 && taken.outcome === "accepted"),
    });
    return taken;
  }

  releaseWaiting(spacingMs: number) {
    const answer = { released: 0, publish: [] as Publishable[] };
    for (const event of this.events.filter(({ outcome }) => outcome === "waiting")) {
      const taken = this.#takeEvent({ ...event.row, spacingMs });
      if (taken.outcome === "waiting") continue;
      const { outcome, jobIds } = taken;
      Object.assign(event, { outcome, jobIds, processed: outcome === "accepted", finished: jobIds.length === 0 });
      answer.released += 1;
      answer.publish.push(...taken.publish);
    }
    return answer;
  }

  #takeEvent(event: EventRow & { spacingMs: number }): AcceptEventAnswer {
    const { effect } = event;
    const at = Date.parse(event.eventTimestamp);
    const account = this.accounts.get(event.accountId ?? "");
    if (effect.kind === "account" && account !== undefined && account.removedAt !== null) {
      const comesBack = effect.change === "account_available" && at > Math.max(account.stateAt ?? 0, account.removedAt);
      if (!comesBack) return { outcome: "ignored", jobIds: [], publish: [], differs: false, queued: null };
    }
    const connection = this.connections.get(event.connectionId ?? "");
    if (effect.change === "connection_enabled" && connection && at >= (connection.stateAt ?? 0)) {
      Object.assign(connection, { disabled: false, stateAt: at });
    }
    if (effect.change === "connection_enabled") {
      for (const missing of this.accounts.values()) {
        if (missing.connectionId === event.connectionId && isMissing(missing, at)) missing.removedAt = null;
      }
    }
    if (effect.change === "connection_disabled" && connection && at > (connection.stateAt ?? 0)) {
      Object.assign(connection, { disabled: true, stateAt: at });
    }
    if (effect.change === "account_available" && account && at >= (account.stateAt ?? 0)) {
      Object.assign(account, { removedAt: null, stateAt: at });
    }
    if (effect.change === "account_removed" && account && at > (account.stateAt ?? 0)) {
      Object.assign(account, { removedAt: at, stateAt: at });
    }
    if (effect.kind === "state") return { outcome: "accepted", jobIds: [], publish: [], differs: false, queued: null };
    const accountIds =
      effect.kind === "account"
        ? [event.accountId ?? ""]
        : [...this.accounts.values()]
            .filter(({ connectionId, removedAt }) => connectionId === event.connectionId && removedAt === null)
            .map(({ accountId }) => accountId);
    if (accountIds.length === 0) return { outcome: "waiting", jobIds: [], publish: [], differs: false, queued: null };
    const keys = effect.workTypes.flatMap((workType) => accountIds.map((accountId) => ({ workType, accountId })));
    const pull: Pull = effect.change === "connection_enabled" ? "at_once" : "event";
    const accepted = keys.toSorted(byKey).map((key) => this.#acceptKey(key, event.spacingMs, pull));
    const [only] = accepted;
    return {
      outcome: accepted.some(({ isNew }) => isNew) ? "accepted" : "coalesced",
      jobIds: accepted.map(({ jobId }) => jobId),
      publish: accepted.flatMap(({ publish }) => publish ?? []),
      differs: false,
      queued:
        only && accepted.length === 1 && keys[0] && !this.isHalfRead(keys[0])
          ? { jobId: only.jobId, dueInMs: only.dueInMs }
          : null,
    };
  }

  #acceptKey(key: SyncKey, spacingMs: number, pull: Pull, id?: string): Accepted {
    const now = this.now();
    const running = this.open(key, "running");
    const queued = this.open(key, "queued");
    if (queued !== undefined) {
      let publish: Publishable | null = null;
      const { failed } = queued;
      if (pull !== "none" && running === undefined && failed !== null && queued.dueAt > now + MINUTE) {
        const patience = [400, 401, 403].includes(failed.status) ? 60 * MINUTE : 5 * MINUTE;
        const due = pull === "at_once" ? now : Math.max(now, failed.at + patience);
        if (due < queued.dueAt && (pull === "at_once" || queued.pulledAttempt !== queued.attempts)) {
          queued.dueAt = due;
          queued.pulledAttempt = queued.attempts;
          publish = this.handOut(queued);
        }
      }
      if (pull === "none") this.readNewestAgain(key);
      return { jobId: queued.id, isNew: false, dueInMs: this.dueIn(queued), publish };
    }
    const attempted = this.account(key).attemptedAt[key.workType];
    const job: MemoryJob = {
      ...key,
      id: id ?? this.newId(),
      status: "queued",
      attempts: 0,
      delivery: 0,
      fence: null,
      dueAt: Math.max(now, attempted === null ? 0 : attempted + spacingMs),
      createdAt: now,
      startedAt: 0,
      leaseUntil: null,
      publishedAt: null,
      republished: 0,
      failed: null,
      pulledAttempt: null,
    };
    this.jobs.push(job);
    const publish = running === undefined ? this.handOut(job) : null;
    return { jobId: job.id, isNew: true, dueInMs: this.dueIn(job), publish };
  }

  acceptJobs({ items, spacingMs }: Parameters<Store["acceptJobs"]>[0]) {
    const publish: Publishable[] = [];
    const notNew: string[] = [];
    for (const item of items.toSorted(byKey)) {
      const key = { workType: item.workType, accountId: item.accountId };
      const accepted = this.#acceptKey(key, spacingMs, "none", item.jobId);
      if (accepted.publish !== null) publish.push(accepted.publish);
      else notNew.push(item.jobId);
    }
    return { publish, notNew, failed: [] };
  }
}

/** Closed by a 404 alone, before that time. */
function isMissing({ removedAt, stateAt }: MemoryAccount, at: number): boolean {
  return removedAt !== null && removedAt !== stateAt && removedAt < at;
}
