import type { JobMessage, JobReason, JobStatus, SyncKey, WorkType } from "@/lib/domain";
import type { AccountDetail, Activity, Balance, Connection, Order, Positions } from "@/lib/provider/provider";
import * as answers from "@/lib/store/answers";
import type { CallFunction } from "@/lib/store/call-function";
import type { EventEffect } from "@/lib/webhook/event-effects";

/** What a run has read so far; absent parts write nothing. */
export type Parts = {
  account?: AccountDetail;
  /** The next run reads the account too: balances or positions came empty, and its flags tell whether that is true. */
  rereadAccount?: boolean;
  holdings?: { balances?: Balance[]; positions?: Positions; orders?: Order[]; ordersUnsupported?: boolean };
};

export type EventRow = {
  webhookId: string;
  eventType: string;
  accountId: string | null;
  connectionId: string | null;
  userId: string | null;
  eventTimestamp: string;
  payload: string;
  /** Null: the event says nothing about parts. */
  failedParts: readonly string[] | null;
  effect: EventEffect;
  unroutable: boolean;
};

type Fenced = SyncKey & { jobId: string; fence: number };
type Guarded = JobMessage & { maxAttempts: number };

/**
 * The port to Postgres: one SQL function a move, one round trip each. The transactions and the invariants live there
 * (supabase/migrations); here is their shape alone. Every method throws StoreError where there is no answer.
 */
export function createStore(call: CallFunction) {
  return {
    acceptEvent: (request: EventRow & { spacingMs: number }) =>
      call("snaptrade_accept_event", request, answers.acceptEventAnswer),
    acceptJobs: (request: { reason: JobReason; spacingMs: number; items: (SyncKey & { jobId: string })[] }) =>
      call("snaptrade_accept_jobs", request, answers.acceptJobsAnswer),

    begin: (request: Guarded & { messageId: string | null; leaseMs: number }) =>
      call("snaptrade_begin_job", request, answers.beginAnswer),
    commitHoldings: (request: Fenced & { parts: Parts }) =>
      call("snaptrade_commit_holdings", request, answers.commitHoldingsAnswer),
    commitTransactions: (
      request: Fenced & {
        rows: Activity[];
        cursor: answers.Cursor | null;
        /** The cursor of another pass, should this page be the last and younger events wait for their reading. */
        again: answers.Cursor | null;
        /** Null: there was no history to read yet. */
        watermark: string | null;
        pages: number;
        pagesLeft: number;
        parts: Parts;
      },
    ) => call("snaptrade_commit_transactions", request, answers.commitTransactionsAnswer),
    /** Without a fence: a delivery that did not begin. `notBeforeMs`: a cooldown's end, else 0. */
    defer: (request: JobMessage & { fence?: number; notBeforeMs: number; parts?: Parts }) =>
      call("snaptrade_defer_job", request, answers.deferAnswer),
    giveBack: (request: Fenced) => call("snaptrade_give_back_job", request, answers.giveBackAnswer),
    fail: (
      request: Fenced & { error: string; status: number; permanent: boolean; maxAttempts: number; parts: Parts },
    ) => call("snaptrade_fail_job", request, answers.failAnswer),
    close: (request: Fenced) => call("snaptrade_close_job", request, answers.closeAnswer),
    republishFailed: (request: Guarded) => call("snaptrade_republish_failed", request, answers.republishFailedAnswer),

    startSweep: (request: { sweepId: string; guardMs: number }) =>
      call("snaptrade_start_sweep", request, answers.startSweepAnswer),
    listStale: (request: {
      sweepId: string;
      cursor: { workType: WorkType; attempted: string; accountId: string } | null;
      limit: number;
      staleMs: Record<WorkType, number>;
    }) => call("snaptrade_list_stale", request, answers.listStaleAnswer),
    endSweep: (request: { sweepId: string }) => call("snaptrade_end_sweep", request, answers.empty),

    takeBackLeases: (request: { limit: number; maxAttempts: number }) =>
      call("snaptrade_take_back_leases", request, answers.takeBackAnswer),
    listOverdue: (request: { cursor: { createdAt: string; jobId: string } | null; limit: number }) =>
      call("snaptrade_list_overdue", request, answers.listOverdueAnswer),
    republish: (request: { items: (SyncKey & { jobId: string; delivery: number })[] }) =>
      call("snaptrade_republish_jobs", request, answers.publishAnswer),
    releaseWaiting: (request: {
      userId?: string;
      limit: number;
      spacingMs: number;
      effects: Record<string, EventEffect>;
    }) => call("snaptrade_release_waiting", request, answers.releaseWaitingAnswer),
    endTick: (request: { retentionMs: number; limit: number }) =>
      call("snaptrade_end_tick", request, answers.endTickAnswer),

    putUser: (request: { userId: string; authUserId?: string; secretCiphertext: string }) =>
      call("snaptrade_put_user", request, answers.putUserAnswer),
    removeUser: (request: { userId: string }) => call("snaptrade_remove_user", request, answers.removeUserAnswer),
    findUser: (request: { userId: string }) => call("snaptrade_find_user", request, answers.findUserAnswer),
    /** In the order of the ids. `after`: the last user of the page before. */
    listSecrets: (request: { after?: string; limit: number }) =>
      call("snaptrade_list_secrets", request, answers.listSecretsAnswer),
    /** Where `from` stands no more, what stands there is answered and nothing is written. */
    replaceSecrets: (request: { items: { userId: string; from: string; to: string }[] }) =>
      call("snaptrade_replace_secrets", request, answers.replaceSecretsAnswer),
    usersToList: (request: { limit: number }) => call("snaptrade_users_to_list", request, answers.usersToListAnswer),
    markListed: (request: { userId: string }) => call("snaptrade_mark_listed", request, answers.empty),
    /** `readAt`: when the reading began; an event that is newer than that stands. */
    putListing: (request: { userId: string; readAt: string; connections: Connection[]; accounts: AccountDetail[] }) =>
      call("snaptrade_put_listing", request, answers.putListingAnswer),

    /** Newest first. `before`: the last job of the page before. */
    listJobs: (request: {
      status?: JobStatus;
      accountId?: string;
      jobIds?: string[];
      before?: { createdAt: string; jobId: string };
      limit: number;
    }) => call("snaptrade_list_jobs", request, answers.listJobsAnswer),
    findAccount: (request: { accountId: string }) => call("snaptrade_find_account", request, answers.findAccountAnswer),
    replay: (request: { items: (SyncKey & { jobId: string })[] }) =>
      call("snaptrade_replay_jobs", request, answers.replayAnswer),
    readHealth: () => call("snaptrade_read_health", {}, answers.healthAnswer),
  };
}

export type Store = ReturnType<typeof createStore>;
