import type { WireObject } from "@/sandbox/snaptrade/wire";

/** SnapTrade spec, getAccountActivities: the default and the most that one answer holds. */
export const MAX_PAGE = 1000;

export type ActivityFilter = {
  startDate?: string;
  endDate?: string;
  types?: readonly string[];
  offset: number;
  limit: number;
};

/** Reverse chronological by trade date; equal times keep their order; activities without a date come last. */
export function latestFirst(activities: readonly WireObject[]): WireObject[] {
  return [...activities].sort((a, b) => tradeTime(b) - tradeTime(a));
}

/**
 * One page of a list that is `latestFirst`. Dates are inclusive on both sides. Whether SnapTrade's date filter drops
 * activities without a trade date is undocumented; here they pass it, so that a client meets them.
 */
export function activityPage(
  activities: readonly WireObject[],
  filter: ActivityFilter,
): { data: readonly WireObject[]; pagination: { offset: number; limit: number; total: number } } {
  const { offset, limit, types } = filter;
  const found = activities.filter(
    (activity) =>
      withinDates(activity.trade_date, filter) && (types === undefined || types.includes(String(activity.type))),
  );
  return { data: found.slice(offset, offset + limit), pagination: { offset, limit, total: found.length } };
}

function withinDates(tradeDate: unknown, { startDate, endDate }: ActivityFilter): boolean {
  if (typeof tradeDate !== "string") return true;
  const day = tradeDate.slice(0, 10);
  return (startDate === undefined || day >= startDate) && (endDate === undefined || day <= endDate);
}

function tradeTime(activity: WireObject): number {
  const date = activity.trade_date;
  const time = typeof date === "string" ? Date.parse(date) : Number.NaN;
  return Number.isNaN(time) ? Number.MIN_SAFE_INTEGER : time;
}
