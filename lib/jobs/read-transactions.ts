import { mayCall, type Reading } from "@/lib/jobs/read-holdings";
import { endOf, type ReadEnd } from "@/lib/jobs/run-end";
import type { ActivityPage } from "@/lib/provider/provider";
import type { Service } from "@/lib/service";
import type { CommitTransactionsAnswer, Cursor } from "@/lib/store/answers";
import type { Parts } from "@/lib/store/store";

/** The provider's most for one request (SnapTrade API reference, getAccountActivities). */
const PAGE_SIZE = 1000;
/** Read again behind the watermark: activities come late and are re-issued. */
const OVERLAP_DAYS = 7;
/** A page that could not be read and committed in the rest of the deadline is left to the next run. */
const NO_NEW_PAGE_AFTER_MS = 30_000;

/**
 * Reads pages, newest first, and commits each under the fence with a cursor, so that a crash or a deferral goes on from
 * there. The end date is fixed for the whole pass, and each page reads up to the oldest date read so far: rows that are
 * inserted or removed above it cannot hide any. The last page is the one that reaches `total`; only it moves the
 * watermark. Where the job has come to cover events that are younger than its pass, another pass over the newest days
 * follows: what they tell of stands above the cursor (I1). Postgres decides that, with the last page. An account whose
 * history SnapTrade is still fetching keeps none: what comes later is older than the overlap of the next run, and would
 * never be read.
 */
export async function readTransactions(service: Service, reading: Reading, jobId: string): Promise<ReadEnd> {
  const { provider } = service;
  const { accountId, user, begun, signal, watch, calls } = reading;
  const startedAt = service.clock();
  const parts: Parts = {};
  const fenced = { jobId, workType: "transactions", accountId, fence: begun.fence } as const;
  if (begun.readsAccount) {
    calls.left -= 1;
    const account = await watch.see(await provider.readAccount(user, accountId, signal));
    await service.reach("run:part");
    if (account.kind !== "ok") return endOf(account, "account", parts);
    parts.account = account.value;
    if (begun.cursor === null && begun.watermark === null && account.value.transactionsInitialSyncCompleted === false) {
      const nothing = { rows: [], cursor: null, again: null, watermark: null, pages: 1, pagesLeft: 0, parts };
      return endOfCommit(await service.store.commitTransactions({ ...fenced, ...nothing })) ?? tookForAPage();
    }
  }

  let cursor = passOf(begun);
  for (;;) {
    if (service.clock() - startedAt > NO_NEW_PAGE_AFTER_MS)
      return { kind: "defer", reason: "deadline", notBeforeMs: 0, parts };
    if (!(await mayCall(service, reading))) return { kind: "defer", reason: "budget", notBeforeMs: 0, parts };
    calls.left -= 1;
    const query = {
      ...(cursor.startDate === null ? {} : { startDate: cursor.startDate }),
      endDate: cursor.oldestDate,
      offset: cursor.offset,
      limit: PAGE_SIZE,
    };
    const page = await watch.see(await provider.readActivities(user, accountId, query, signal));
    await service.reach("run:page");
    if (page.kind !== "ok") return endOf(page, "activities", parts);
    if (page.value.activities.length === 0 && cursor.offset < page.value.total) {
      const reason = `activities: an empty page at ${cursor.offset} of ${page.value.total}`;
      return { kind: "fail", status: page.status, reason, permanent: false, parts };
    }
    const next = nextCursor(cursor, page.value);
    const again = firstCursor(cursor.endDate, begun.today);
    const committed = await service.store.commitTransactions({
      ...fenced,
      rows: page.value.activities,
      cursor: next,
      again,
      watermark: cursor.endDate,
      pages: cursor.pages + 1,
      pagesLeft: Math.ceil((page.value.total - cursor.offset) / PAGE_SIZE) - 1,
      parts,
    });
    await service.reach("run:page-committed");
    const end = endOfCommit(committed);
    if (end !== null) return end;
    cursor = next ?? again;
    delete parts.account;
  }
}

/** How a commit ends the run; null: it was a page in the middle. */
function endOfCommit(committed: CommitTransactionsAnswer): ReadEnd | null {
  switch (committed.outcome) {
    case "done":
      return { kind: "committed", publish: committed.publish };
    case "gone":
      return { kind: "account_gone" };
    case "fenced":
      return { kind: "fenced" };
    case "page":
      return null;
  }
}

function tookForAPage(): never {
  throw new Error("Postgres took the last page for one in the middle");
}

/** Where this run goes on. A pass of which nothing was read yet ends today, whenever it was decided on. */
function passOf({ cursor, watermark, today }: Reading["begun"]): Cursor {
  if (cursor === null) return firstCursor(watermark, today);
  return cursor.pages === 0 ? { ...cursor, endDate: today, oldestDate: today } : cursor;
}

function firstCursor(watermark: string | null, today: string): Cursor {
  const startDate = watermark === null ? null : daysBefore(watermark, OVERLAP_DAYS);
  return { startDate, endDate: today, oldestDate: today, offset: 0, pages: 0 };
}

/**
 * Where the next page begins, or null after the last one. It begins at the oldest date of this page, so that rows of that
 * date are read again (the upsert knows them); where one date fills more than a page, or a row has no date, by offset.
 */
export function nextCursor(cursor: Cursor, page: ActivityPage): Cursor | null {
  const { activities, total } = page;
  if (cursor.offset + activities.length >= total) return null;
  const pages = cursor.pages + 1;
  const oldest = activities.at(-1)?.tradeDate?.slice(0, 10);
  return oldest === undefined || oldest >= cursor.oldestDate
    ? { ...cursor, offset: cursor.offset + activities.length, pages }
    : { ...cursor, oldestDate: oldest, offset: 0, pages };
}

function daysBefore(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) - days * 86_400_000).toISOString().slice(0, 10);
}
