/** What the data endpoints of one account answer. Always the cached state: a disabled connection does not make them fail. */
import { activityPage, MAX_PAGE } from "@/sandbox/snaptrade/activity-page";
import { badParameter } from "@/sandbox/snaptrade/provider-errors";
import { jsonReply, type Reply } from "@/sandbox/snaptrade/reply";
import type { WireObject } from "@/sandbox/snaptrade/wire";
import type { SimAccount } from "@/sandbox/snaptrade/world";

const DAY_MS = 86_400_000;
/** SnapTrade spec, getUserAccountOrders: 30 days by default, at most 90. */
const DEFAULT_ORDER_DAYS = 30;
const MAX_ORDER_DAYS = 90;

const OPEN_STATUSES = [
  "NONE",
  "PENDING",
  "ACCEPTED",
  "PARTIAL",
  "QUEUED",
  "TRIGGERED",
  "ACTIVATED",
  "CONTINGENT_ORDER",
];
const ORDER_STATES = ["all", "open", "executed"];

/** GET /accounts/{id}/orders. An order without a readable `time_placed` is never too old. */
export function readOrders(account: SimAccount, query: URLSearchParams, nowMs: number): Reply {
  const state = query.get("state") ?? "all";
  if (!ORDER_STATES.includes(state)) return badParameter("state", state);
  const days = wholeNumber(query, "days", DEFAULT_ORDER_DAYS);
  if (days === null) return badParameter("days", query.get("days") ?? "");
  const sinceMs = nowMs - Math.min(days, MAX_ORDER_DAYS) * DAY_MS;
  return jsonReply(
    200,
    account.orders.filter((order) => inState(order, state) && !(placedMs(order) < sinceMs)),
  );
}

/** GET /accounts/{id}/activities. `limit` above 1000 is cut to 1000. */
export function readActivities(account: SimAccount, query: URLSearchParams): Reply {
  for (const name of ["startDate", "endDate"]) {
    const value = query.get(name);
    if (value !== null && !/^\d{4}-\d{2}-\d{2}/.test(value)) return badParameter(name, value);
  }
  const offset = wholeNumber(query, "offset", 0);
  if (offset === null) return badParameter("offset", query.get("offset") ?? "");
  const limit = wholeNumber(query, "limit", MAX_PAGE);
  if (limit === null || limit === 0) return badParameter("limit", query.get("limit") ?? "");
  const startDate = query.get("startDate")?.slice(0, 10);
  const endDate = query.get("endDate")?.slice(0, 10);
  const types = query.get("type")?.split(",");
  return jsonReply(
    200,
    activityPage(account.activities, {
      offset,
      limit: Math.min(limit, MAX_PAGE),
      ...(startDate === undefined ? {} : { startDate }),
      ...(endDate === undefined ? {} : { endDate }),
      ...(types === undefined ? {} : { types }),
    }),
  );
}

function inState(order: WireObject, state: string): boolean {
  if (state === "all") return true;
  const status = String(order.status);
  return state === "open" ? OPEN_STATUSES.includes(status) : status === "EXECUTED" || status === "PARTIAL";
}

function placedMs(order: WireObject): number {
  const placed = order.time_placed;
  return typeof placed === "string" ? Date.parse(placed) : Number.NaN;
}

/** null: not a whole number of at least 0. */
function wholeNumber(query: URLSearchParams, name: string, usual: number): number | null {
  const value = query.get(name);
  if (value === null) return usual;
  return /^\d{1,9}$/.test(value) ? Number(value) : null;
}
