import { randomUUID } from "node:crypto";
import type { WorkType } from "@/lib/domain";

/** Accounts to make a move on, each of its own user and connection, and the open jobs. */
export type Subjects = {
  /** Has a queued job. */
  queued: string;
  /** Has a running job with this fence. */
  running: { account: string; fence: number };
  /** Has no open job; `user-N` and `conn-N` are its own. */
  idle: { account: string; user: string; connection: string };
  /** As idle, and its details were never read. */
  bare: string;
  /** The id of an event that has a row. */
  seenWebhook: string;
  jobOf(account: string, workType?: WorkType): string;
};

export type Move = [what: string, functionName: string, request: () => object];

const holdings = { kind: "account", needs: "account", workTypes: ["holdings"], change: "none" };
const newEvent = (account: string, webhookId: string = randomUUID()) => ({
  webhookId,
  eventType: "ACCOUNT_HOLDINGS_UPDATED",
  accountId: account,
  connectionId: null,
  userId: null,
  eventTimestamp: new Date().toISOString(),
  payload: "{}",
  failedParts: null,
  unroutable: false,
  spacingMs: 0,
  effect: holdings,
});
const both = { ...holdings, workTypes: ["holdings", "transactions"], change: "account_available" };

/** Each move of one key: what it reads must not depend on what the tables hold. */
export function movesOfOneKey(subjects: Subjects): Move[] {
  const key = (account: string) => ({
    jobId: subjects.jobOf(account),
    workType: "holdings",
    accountId: account,
    delivery: 1,
    maxAttempts: 8,
  });
  const running = () => ({ ...key(subjects.running.account), fence: subjects.running.fence, parts: {} });
  return [
    ["an event that is new", "snaptrade_accept_event", () => newEvent(subjects.idle.account)],
    [
      "an event that is a duplicate",
      "snaptrade_accept_event",
      () => newEvent(subjects.idle.account, subjects.seenWebhook),
    ],
    ["an event that coalesces", "snaptrade_accept_event", () => newEvent(subjects.queued)],
    ["an event behind a run", "snaptrade_accept_event", () => newEvent(subjects.running.account)],
    [
      "an event of both work types of a bare account",
      "snaptrade_accept_event",
      () => ({ ...newEvent(subjects.bare), effect: both }),
    ],
    [
      "a key of a sweep",
      "snaptrade_accept_jobs",
      () => ({ reason: "sweep", spacingMs: 0, items: [{ ...key(subjects.idle.account), jobId: randomUUID() }] }),
    ],
    ["begin", "snaptrade_begin_job", () => ({ ...key(subjects.queued), messageId: "m", leaseMs: 60_000 })],
    ["commit", "snaptrade_commit_holdings", running],
    ["a deferral before begin", "snaptrade_defer_job", () => ({ ...key(subjects.queued), notBeforeMs: 0 })],
    ["a deferral in a run", "snaptrade_defer_job", () => ({ ...running(), notBeforeMs: 0 })],
    ["giving back", "snaptrade_give_back_job", running],
    ["a failed attempt", "snaptrade_fail_job", () => ({ ...running(), error: "e", status: 500, permanent: false })],
    ["a last attempt", "snaptrade_fail_job", () => ({ ...running(), error: "e", status: 402, permanent: true })],
    ["closing a key", "snaptrade_close_job", running],
    ["the failure callback", "snaptrade_republish_failed", () => key(subjects.queued)],
    ["a publish of reconcile", "snaptrade_republish_jobs", () => ({ items: [key(subjects.queued)] })],
    [
      "taking back when nothing is to be taken back",
      "snaptrade_take_back_leases",
      () => ({ limit: 200, maxAttempts: 8 }),
    ],
    [
      "a listing of one account",
      "snaptrade_put_listing",
      () => ({
        userId: subjects.idle.user,
        connections: [{ connectionId: subjects.idle.connection, brokerage: null, disabled: false }],
        accounts: [
          {
            accountId: subjects.idle.account,
            connectionId: subjects.idle.connection,
            holdingsLastSuccessfulSync: "2100-01-01T00:00:00Z",
          },
        ],
      }),
    ],
  ];
}
