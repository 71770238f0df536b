import type { Row } from "@/bench/report/row";
import { colors, table } from "@/lib/cli/text";

type Figure = keyof Row;

/** In words, in the order of the table. */
const LINES: readonly [Figure, string][] = [
  ["timeScale", "time scale"],
  ["postedSeconds", "events posted in (s)"],
  ["providerCalls", "provider calls"],
  ["callsNeeded", "calls needed"],
  ["callsOverNeeded", "calls / needed"],
  ["provider429", "429s"],
  ["maxCallsInWindow", "most calls in a window"],
  ["share", "its share of the limit"],
  ["shareUsed", "share used while work waited"],
  ["lostUpdates", "lost updates"],
  ["differingKeys", "keys that differ at the end"],
  ["wastedRuns", "wasted runs"],
  ["freshP50Seconds", "event to stored, p50 (s)"],
  ["freshP99Seconds", "event to stored, p99 (s)"],
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
];

/** The rows of one scenario side by side: figures downwards, contestants across. */
export function scenarioTable(rows: readonly Row[]): string {
  const lines = LINES.map(([figure, words]) => [words, ...rows.map((row) => told(row[figure]))]);
  const verdicts = ["row", ...rows.map(verdict)];
  return table(["", ...rows.map(({ contestant }) => contestant)], [...lines, verdicts]);
}

function told(value: Row[Figure]): string {
  return value === null ? "n/a" : String(value);
}

function verdict({ valid, drained, non200 }: Row): string {
  if (!valid) return colors.red("INVALID: machine busy");
  if (drained === false) return colors.red("not drained");
  return non200 > 0 ? colors.red(`${non200} refused`) : "valid";
}
