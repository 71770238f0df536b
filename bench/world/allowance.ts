/** What the provider lets through a minute from a moment on, and what users take of it. */
export type Capacity = { fromMs: number; limit: number; users: number };

const MINUTE_MS = 60_000;

/**
 * The background calls that a contestant may make from one moment to another: its share of the limit, and no more than
 * users leave of it.
 */
export function allowedCalls(capacities: readonly Capacity[], share: number, fromMs: number, toMs: number): number {
  return capacities.reduce((sum, { fromMs: startMs, limit, users }, i) => {
    const endMs = capacities[i + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    const overlapMs = Math.min(toMs, endMs) - Math.max(fromMs, startMs);
    return overlapMs <= 0 ? sum : sum + (perMinute(share, limit, users) * overlapMs) / MINUTE_MS;
  }, 0);
}

/** How long from a moment on so many calls must take at least. */
export function leastTimeMs(capacities: readonly Capacity[], share: number, fromMs: number, calls: number): number {
  let left = Math.max(0, calls);
  let atMs = fromMs;
  for (const [i, { limit, users }] of capacities.entries()) {
    if (left === 0) break;
    const endMs = capacities[i + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
    if (endMs <= atMs) continue;
    const perMs = perMinute(share, limit, users) / MINUTE_MS;
    if (left <= perMs * (endMs - atMs)) return atMs + left / perMs - fromMs;
    left -= perMs * (endMs - atMs);
    atMs = endMs;
  }
  return atMs - fromMs;
}

function perMinute(share: number, limit: number, users: number): number {
  return Math.min(share * limit, limit - users);
}
