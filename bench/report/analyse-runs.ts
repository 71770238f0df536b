import type { Change, RunRecord } from "@/bench/world/recorder";
import type { SyncKey } from "@/lib/domain";

/** Of an account that was synced a day ago at most: three parts, or one page. */
const CALLS = { holdings: 3, transactions: 1 } as const;

const keyOf = ({ workType, accountId }: SyncKey) => `${workType} ${accountId}`;

type KeyHistory = {
  changes: readonly Change[];
  /** Those that were stored, in the order in which they began. */
  stored: readonly { beganMs: number; storedMs: number }[];
  /** When each run began, stored or not, in order. */
  began: readonly number[];
};

export type RunFigures = {
  stored: number;
  wasted: number;
  callsNeeded: number;
  /** For each change the time until the data of a run that began after it were stored; Infinity: no such run. */
  freshnessMs: number[];
  /** For each change that a run covers the time until that run began. */
  hopMs: number[];
  /** When the last of those was stored. */
  lastStoredMs: number | null;
  /** The times in which a change waited for a run that might have begun, without overlaps. */
  waiting: (readonly [from: number, to: number])[];
};

/**
 * What the runs of a row did for its changes. `spacingMs`: how soon after its last run a key's next one may begin. A change
 * that no run came for waits until `endMs`.
 */
export function analyseRuns(
  changes: readonly Change[],
  runs: readonly RunRecord[],
  spacingMs: number,
  endMs: number,
): RunFigures {
  const figures: RunFigures = {
    stored: 0,
    wasted: 0,
    callsNeeded: 0,
    freshnessMs: [],
    hopMs: [],
    lastStoredMs: null,
    waiting: [],
  };
  const waiting: [number, number][] = [];
  for (const [key, history] of histories(changes, runs)) {
    const wasted = wastedOf(history);
    figures.stored += history.stored.length;
    figures.wasted += wasted;
    figures.callsNeeded += (history.stored.length - wasted) * CALLS[key.workType];
    for (const { atMs, bySweep } of history.changes) {
      const covering = history.stored.filter(({ beganMs }) => beganMs >= atMs);
      const storedMs = Math.min(...covering.map((run) => run.storedMs));
      if (!bySweep) figures.freshnessMs.push(storedMs - atMs);
      if (covering[0] !== undefined && !bySweep) figures.hopMs.push(covering[0].beganMs - atMs);
      if (covering[0] !== undefined) figures.lastStoredMs = Math.max(figures.lastStoredMs ?? 0, storedMs);
      const before = history.began.findLast((beganMs) => beganMs < atMs);
      const dueMs = Math.max(atMs, (before ?? Number.NEGATIVE_INFINITY) + spacingMs);
      const untilMs = covering[0]?.beganMs ?? endMs;
      if (untilMs > dueMs) waiting.push([dueMs, untilMs]);
    }
  }
  return { ...figures, waiting: union(waiting) };
}

function histories(changes: readonly Change[], runs: readonly RunRecord[]): [SyncKey, KeyHistory][] {
  const keys = new Map<string, { key: SyncKey; changes: Change[]; runs: RunRecord[] }>();
  const entry = ({ workType, accountId }: SyncKey) => {
    const key = { workType, accountId };
    const known = keys.get(keyOf(key)) ?? { key, changes: [], runs: [] };
    keys.set(keyOf(key), known);
    return known;
  };
  for (const change of changes) entry(change).changes.push(change);
  for (const run of runs) entry(run).runs.push(run);
  return [...keys.values()].map((found) => {
    const own = found.runs.toSorted((a, b) => a.beganMs - b.beganMs);
    const stored = own.flatMap(({ beganMs, storedMs }) => (storedMs === null ? [] : [{ beganMs, storedMs }]));
    return [found.key, { changes: found.changes, stored, began: own.map(({ beganMs }) => beganMs) }];
  });
}

/** Runs before whose begin nothing had changed whose event came after the begin of the one before. */
function wastedOf({ changes, stored }: KeyHistory): number {
  return stored.filter(({ beganMs }, i) => {
    const before = stored[i - 1]?.beganMs ?? Number.NEGATIVE_INFINITY;
    return !changes.some(({ atMs, answeredMs }) => answeredMs > before && atMs <= beganMs);
  }).length;
}

function union(spans: [number, number][]): [number, number][] {
  const joined: [number, number][] = [];
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    const last = joined.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

/** From the fault until runs are stored again, also of the keys whose runs it cut off; null: never. */
export function recoveryMs(faultMs: number, runs: readonly RunRecord[]): number | null {
  const after = runs.filter(({ beganMs, storedMs }) => beganMs > faultMs && storedMs !== null);
  const last = new Map(
    runs
      .filter(({ beganMs }) => beganMs <= faultMs)
      .toSorted((a, b) => a.beganMs - b.beganMs)
      .map((run) => [keyOf(run), run]),
  );
  const cutOff = [...last].flatMap(([key, { storedMs }]) => (storedMs === null ? [key] : []));
  const firstOf = (found: readonly RunRecord[]) => Math.min(...found.map(({ storedMs }) => storedMs ?? Infinity));
  const ends = [firstOf(after), ...cutOff.map((key) => firstOf(after.filter((run) => keyOf(run) === key)))];
  const latest = Math.max(...ends);
  return Number.isFinite(latest) ? latest - faultMs : null;
}

/** The value below which that part of them lies; null of none. */
export function percentile(values: readonly number[], part: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? null;
}
