import { colors, table } from "@/lib/cli/text";

/** The demo's result, as its last line prints it. */
export type Result = {
  events: number;
  accepted: number;
  duplicate: number;
  coalesced: number;
  other: number;
  non200: number;
  jobs: number;
  runs: number;
  wastedRuns: number;
  deliveries: number;
  callsNeeded: number;
  providerCalls: number;
  provider429: number;
  maxCallsInWindow: number;
  lostUpdates: number;
  staleAccounts: number;
  drainSeconds: number;
  ok: boolean;
};

type MustBeZero = "non200" | "lostUpdates" | "staleAccounts" | "provider429" | "wastedRuns";

/** What must be 0, in words, with what was found. */
const CHECKS: readonly [MustBeZero, string][] = [
  ["non200", "every event was answered 200"],
  ["lostUpdates", "every account's data is what SnapTrade has"],
  ["staleAccounts", "every accepted or coalesced event was followed by a run"],
  ["provider429", "SnapTrade never answered 429"],
  ["wastedRuns", "no run without an event"],
];

/** `drained`: no job was left in the time that the calls still due may take. */
export function isOk(result: Omit<Result, "ok">, drained: boolean): boolean {
  return drained && CHECKS.every(([name]) => result[name] === 0);
}

export type Circumstances = {
  /** Calls a minute that SnapTrade allowed. */
  limit: number;
  /** How long the posts took, and how long the storm is by itself. */
  postedSeconds: number;
  stormSeconds: number;
  /** The app was away for a while: that too makes the posting longer. */
  killed: boolean;
  /** Null: drained. Else how long it was waited for in vain, and the keys that a job still stands for. */
  notDrained: { withinSeconds: number; openKeys: number } | null;
  /** Who failed a check. */
  culprits: Partial<Record<MustBeZero, string[]>>;
};

/** Two short tables for people: figures and checks. */
export function resultTable(result: Result, circumstances: Circumstances): string {
  const { events, accepted, duplicate, coalesced, other, jobs, runs, deliveries, callsNeeded, providerCalls } = result;
  const { limit, postedSeconds, notDrained, culprits } = circumstances;
  const figures = [
    ["events", `${events}`, `${accepted} accepted, ${coalesced} coalesced, ${duplicate} duplicate, ${other} other`],
    ["posted in", `${postedSeconds} s`, pace(events, circumstances)],
    ["jobs", `${jobs}`, `${runs} runs, ${deliveries} deliveries (${ratio(deliveries, jobs)} a job)`],
    ["SnapTrade calls", `${providerCalls}`, `${callsNeeded} needed (${ratio(providerCalls, callsNeeded)} times)`],
    ["most calls in a minute", `${result.maxCallsInWindow}`, `limit ${limit}`],
    ["drained after", `${result.drainSeconds} s`, "from the last answer until no job was left"],
  ];
  if (notDrained !== null) figures.splice(-1);
  const checks = CHECKS.map(([name, words]) => {
    const count = result[name];
    const who = (culprits[name] ?? []).slice(0, 10).map((culprit) => `\n${culprit}`);
    return [verdict(count === 0), words, count === 0 ? "" : `${name} ${count}${who.join("")}`];
  });
  checks.push([verdict(notDrained === null), "every job ended", notDrained === null ? "" : late(notDrained)]);
  return `${table([], figures)}\n\n${table([], checks)}`;
}

/** Where the posts took clearly longer than the storm, why: the storm's own pace would be wrong then. */
function pace(events: number, { postedSeconds, stormSeconds, killed }: Circumstances): string {
  if (postedSeconds <= 1.2 * stormSeconds) return `${Math.round(events / postedSeconds)} a second`;
  return `the storm is ${Math.round(stormSeconds)} s long; ${killed ? "the app was away" : "this machine was busy"}`;
}

function late({ withinSeconds, openKeys }: NonNullable<Circumstances["notDrained"]>): string {
  return `not drained within ${withinSeconds} s\n${openKeys} keys are left out above`;
}

function verdict(isGood: boolean): string {
  return isGood ? colors.green("ok") : colors.red("FAILED");
}

function ratio(part: number, whole: number): string {
  return whole === 0 ? "-" : (part / whole).toFixed(3);
}
