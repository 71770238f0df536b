import type { RoundTrips } from "@/bench/count-round-trips";
import type { Row } from "@/bench/report/row";
import { colors, table } from "@/lib/cli/text";

type Figure = Exclude<keyof Row, "roundTrips">;

/** In words, in the order of the table. */
const LINES: readonly [Figure, string][] = [
  ["timeScale", "time scale"],
  ["postedSeconds", "events posted in (s)"],
  ["providerCalls", "provider calls"],
  ["callsNeeded", "calls needed"],
  ["callsOverNeeded", "calls / needed"],
  ["provider429", "429s"],
  ["unexcused429", "of these not excused"],
  ["user429", "429s of users"],
  ["maxCallsInWindow", "most calls in a window"],
  ["share", "its share of the limit"],
  ["shareUsed", "share used while work waited"],
  ["lostUpdates", "lost updates"],
  ["differingKeys", "keys that differ at the end"],
  ["wastedRuns", "wasted runs"],
  ["hopP50Seconds", "event to the run's begin, p50 (s)"],
  ["freshP50Seconds", "event to stored, p50 (s)"],
  ["freshP99Seconds", "event to stored, p99 (s)"],
  ["freshMostSeconds", "event to stored, most (s)"],
  ["drainSeconds", "drained after (s)"],
  ["drainBoundSeconds", "lower bound (s)"],
  ["drainOverBound", "drain / bound"],
  ["recoverySeconds", "recovered after (s)"],
  ["sleptSeconds", "slept in functions (s)"],
  ["functionSeconds", "function seconds"],
  ["jobs", "jobs"],
  ["runs", "runs stored"],
  ["deliveriesPerJob", "deliveries a job"],
  ["redisRequests", "requests to Redis"],
  ["postgresRequests", "requests to Postgres"],
  ["qstashRequests", "requests to QStash"],
  ["peakMemoryMb", "peak memory (MB)"],
  ["cpuSeconds", "processor (s, real time)"],
  ["machineBusy", "machine busy"],
  ["longestPauseMs", "its longest pause (ms, real time)"],
];

const TRIPS: readonly [keyof RoundTrips, string][] = [
  ["accepted", "accepted event: Redis + Postgres + QStash"],
  ["duplicate", "duplicate"],
  ["coalesced", "coalesced"],
  ["run", "run of holdings"],
];

/** The rows of one scenario side by side: figures downwards, contestants across. */
export function scenarioTable(rows: readonly Row[]): string {
  const lines = LINES.map(([figure, words]) => [words, ...rows.map((row) => told(row[figure]))]);
  const trips = TRIPS.map(([kind, words]) => [words, ...rows.map(({ roundTrips }) => trip(roundTrips, kind))]);
  const verdicts = ["row", ...rows.map(verdict)];
  return table(["", ...rows.map(({ contestant }) => contestant)], [...lines, ...trips, verdicts]);
}

function trip(roundTrips: RoundTrips | null, kind: keyof RoundTrips): string {
  if (roundTrips === null) return "n/a";
  const { redis, postgres, qstash } = roundTrips[kind];
  return `${redis} + ${postgres} + ${qstash}`;
}

function told(value: Row[Figure]): string {
  return value === null ? "n/a" : String(value);
}

function verdict({ valid, drained, non200 }: Row): string {
  if (!valid) return colors.red("INVALID: machine busy or away");
  if (drained === false) return colors.red("not drained");
  return non200 > 0 ? colors.red(`${non200} refused`) : "valid";
}
