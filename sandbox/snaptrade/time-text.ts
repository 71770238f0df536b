/** The three ways in which SnapTrade writes a time (SnapTrade docs, syncing; SDK 11.0.3 types). */

const DAY_MS = 86_400_000;

/** `2026-11-29`: dates of transactions' sync status and of queries. */
export function dateText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** All transactions up to and including this day are in: data is a day behind (SnapTrade docs, syncing). */
export function yesterdayText(ms: number): string {
  return dateText(ms - DAY_MS);
}

/** `2026-11-29 18:42:46.561000+00:00`, with a space: holdings' sync status. */
export function spacedTimeText(ms: number): string {
  return microsecondTimeText(ms).replace("T", " ");
}

/** `2026-11-29T18:42:46.561000+00:00`: webhooks' `eventTimestamp`. */
export function microsecondTimeText(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000+00:00");
}

/** `2026-11-29T18:42:46.561Z`: everything else. */
export function isoTimeText(ms: number): string {
  return new Date(ms).toISOString();
}
