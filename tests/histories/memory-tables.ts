import type { JobMessage, JobStatus, Publishable, SyncKey, WorkType } from "@/lib/domain";
import type { Activity } from "@/lib/provider/provider";
import type { Cursor } from "@/lib/store/answers";
import type { EventRow, Parts } from "@/lib/store/store";

export type MemoryJob = SyncKey & {
  id: string;
  status: JobStatus;
  attempts: number;
  delivery: number;
  fence: number | null;
  dueAt: number;
  createdAt: number;
  startedAt: number;
  leaseUntil: number | null;
  publishedAt: number | null;
  republished: number;
  failed: { at: number; status: number } | null;
  pulledAttempt: number | null;
};
export type MemoryEvent = {
  row: EventRow;
  webhookId: string;
  outcome: string;
  processed: boolean;
  jobIds: string[];
  receivedAt: number;
  finished: boolean;
};
export type MemoryAccount = {
  accountId: string;
  userId: string;
  connectionId: string;
  removedAt: number | null;
  stateAt: number | null;
  attemptedAt: Record<WorkType, number | null>;
  syncedAt: Record<WorkType, number | null>;
  detailRead: boolean;
  transactionsReady: boolean | null;
  watermark: string | null;
  cursor: Cursor | null;
  passBeganAt: number | null;
  pages: number;
  holdings: NonNullable<Parts["holdings"]>;
  transactions: Map<string, Activity>;
};
export type MemoryConnection = { userId: string; disabled: boolean; stateAt: number | null };

const FINAL: JobStatus[] = ["done", "superseded", "dead", "gone"];

/** The tables in memory, and what the job functions share: supabase/migrations/20260503 to 20260506, said again. */
export class MemoryTables {
  readonly jobs: MemoryJob[] = [];
  readonly events: MemoryEvent[] = [];
  readonly accounts = new Map<string, MemoryAccount>();
  readonly connections = new Map<string, MemoryConnection>();
  /** Set by whoever counts fences elsewhere. */
  fence = 0;

  constructor(
    readonly now: () => number,
    /** A new job's id. */
    public newId: () => string,
    readonly secretCiphertext: string,
  ) {}

  addAccount(accountId: string, connectionId: string, userId: string): void {
    this.connections.set(connectionId, { userId, disabled: false, stateAt: null });
    this.accounts.set(accountId, {
      accountId,
      userId,
      connectionId,
      removedAt: null,
      stateAt: null,
      attemptedAt: { holdings: null, transactions: null },
      syncedAt: { holdings: null, transactions: null },
      detailRead: true,
      transactionsReady: true,
      watermark: null,
      cursor: null,
      passBeganAt: null,
      pages: 1,
      holdings: {},
      transactions: new Map(),
    });
  }

  open(key: SyncKey, status: "queued" | "running"): MemoryJob | undefined {
    return this.jobs.find((job) => sameKey(job, key) && job.status === status);
  }

  account(key: SyncKey): MemoryAccount {
    const account = this.accounts.get(key.accountId);
    if (account === undefined) throw new Error(`No account ${key.accountId}`);
    return account;
  }
  isGone(key: SyncKey): boolean {
    const account = this.account(key);
    return account.removedAt !== null || this.connections.get(account.connectionId)?.disabled === true;
  }
  readsAccount(account: MemoryAccount, workType: WorkType): boolean {
    if (workType === "holdings") return !account.detailRead;
    return account.watermark === null && account.cursor === null && account.transactionsReady !== true;
  }
  isHalfRead(key: SyncKey): boolean {
    return key.workType === "transactions" && (this.account(key).cursor?.pages ?? 0) > 0;
  }
  readNewestAgain(key: SyncKey): void {
    if (this.isHalfRead(key)) this.account(key).passBeganAt = Number.NEGATIVE_INFINITY;
  }
  /** An event of after that time says that the account is there. */
  isAnnounced(account: MemoryAccount, at: number): boolean {
    const connection = this.connections.get(account.connectionId);
    const connectedAt = connection?.disabled === false ? (connection.stateAt ?? 0) : 0;
    return account.removedAt === null && Math.max(account.stateAt ?? 0, connectedAt) > at;
  }
  calls(key: SyncKey): number {
    const account = this.account(key);
    return (key.workType === "holdings" ? 3 : account.pages) + Number(this.readsAccount(account, key.workType));
  }
  dueIn(job: MemoryJob): number {
    return Math.max(0, Math.ceil(job.dueAt - this.now()));
  }
  handOut(job: MemoryJob): Publishable {
    job.delivery += 1;
    job.publishedAt = this.now();
    const { id: jobId, workType, accountId, delivery } = job;
    return { jobId, workType, accountId, delivery, calls: this.calls(job), dueInMs: this.dueIn(job) };
  }
  handOutTrailing(key: SyncKey): Publishable | null {
    const trailing = this.open(key, "queued");
    return trailing === undefined ? null : this.handOut(trailing);
  }
  queuedUnder(message: JobMessage): MemoryJob | undefined {
    return this.jobs.find(
      ({ id, status, delivery }) => id === message.jobId && status === "queued" && delivery === message.delivery,
    );
  }
  holdFence(request: { jobId: string; fence: number }): MemoryJob | undefined {
    return this.jobs.find(
      ({ id, status, fence }) => id === request.jobId && status === "running" && fence === request.fence,
    );
  }
  finishEvents(jobId: string): void {
    for (const event of this.events) {
      if (event.finished || !event.jobIds.includes(jobId)) continue;
      const isOpen = this.jobs.some(({ id, status }) => event.jobIds.includes(id) && !FINAL.includes(status));
      if (!isOpen) Object.assign(event, { finished: true, processed: true });
    }
  }
  end(job: MemoryJob, status: JobStatus): void {
    Object.assign(job, { status, leaseUntil: null });
  }
  supersede(job: MemoryJob, by: MemoryJob): void {
    this.end(job, "superseded");
    by.attempts = Math.max(by.attempts, job.attempts);
    for (const event of this.events) {
      if (!event.finished && event.jobIds.includes(job.id)) {
        event.jobIds = [...new Set(event.jobIds.map((id) => (id === job.id ? by.id : id)))].sort();
      }
    }
  }
  requeue(job: MemoryJob, dueAt: number, counts: boolean): MemoryJob {
    if (!counts) job.attempts -= 1;
    const trailing = this.open(job, "queued");
    if (trailing === undefined) return Object.assign(job, { status: "queued", leaseUntil: null, dueAt });
    this.supersede(job, trailing);
    return Object.assign(trailing, { dueAt: Math.max(trailing.dueAt, dueAt), failed: job.failed });
  }
  closeKey(key: SyncKey): void {
    for (const status of ["queued", "running"] as const) {
      const job = this.open(key, status);
      if (job === undefined) continue;
      this.end(job, "gone");
      this.finishEvents(job.id);
    }
  }
  bury(job: MemoryJob): Publishable | null {
    this.end(job, "dead");
    this.finishEvents(job.id);
    return this.handOutTrailing(job);
  }
  finish(job: MemoryJob): Publishable | null {
    this.end(job, "done");
    job.attempts -= 1;
    for (const other of this.jobs) if (sameKey(other, job) && other.status === "dead") other.status = "superseded";
    this.finishEvents(job.id);
    return this.handOutTrailing(job);
  }
  writeParts(job: MemoryJob, parts: Parts): boolean {
    const account = this.account(job);
    if (this.isGone(job)) return false;
    if (parts.account) {
      account.transactionsReady = parts.account.transactionsInitialSyncCompleted;
      account.detailRead = true;
    }
    if (parts.rereadAccount) account.detailRead = false;
    if (parts.holdings === undefined) return false;
    const { balances, positions, orders } = parts.holdings;
    const stored = account.holdings.positions?.asOf ?? "";
    if (balances) account.holdings.balances = balances;
    if (positions && (positions.asOf ?? "") >= stored) account.holdings.positions = positions;
    if (orders) account.holdings.orders = orders;
    return [balances, positions, orders ?? parts.holdings.ordersUnsupported].every((part) => part !== undefined);
  }

  isFinal(status: JobStatus): boolean {
    return FINAL.includes(status);
  }
}

function sameKey(a: SyncKey, b: SyncKey): boolean {
  return a.workType === b.workType && a.accountId === b.accountId;
}
export function byKey(a: SyncKey, b: SyncKey): number {
  return a.workType.localeCompare(b.workType) || a.accountId.localeCompare(b.accountId);
}
