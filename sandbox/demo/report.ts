import Table from "cli-table3";
import pc from "picocolors";

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

export function isOk(result: Omit<Result, "ok">): boolean {
  return CHECKS.every(([name]) => result[name] === 0);
}

export type Circumstances = {
  /** Calls a minute that SnapTrade allowed. */
  limit: number;
  /** How long the posts took; longer than the storm where the machine was too slow for it. */
  stormSeconds: number;
  /** Who failed a check. */
  culprits: Partial<Record<MustBeZero, string[]>>;
};

/** A short table for people. */
export function resultTable(result: Result, { limit, stormSeconds, culprits }: Circumstances): string {
  const table = new Table({ style: { head: [], border: [] } });
  const { events, accepted, duplicate, coalesced, other, jobs, runs, deliveries, callsNeeded, providerCalls } = result;
  table.push(
    ["events", `${events}`, `${accepted} accepted, ${coalesced} coalesced, ${duplicate} duplicate, ${other} other`],
    ["posted in", `${stormSeconds} s`, `${Math.round(events / stormSeconds)} a second`],
    ["jobs", `${jobs}`, `${runs} runs, ${deliveries} deliveries (${ratio(deliveries, jobs)} a job)`],
    ["SnapTrade calls", `${providerCalls}`, `${callsNeeded} needed (${ratio(providerCalls, callsNeeded)} times)`],
    ["most calls in a minute", `${result.maxCallsInWindow}`, `limit ${limit}`],
    ["drained after", `${result.drainSeconds} s`, "from the last answer until no job was left"],
  );
  for (const [name, words] of CHECKS) {
    const count = result[name];
    const who = (culprits[name] ?? []).slice(0, 10).join("\n");
    table.push([count === 0 ? pc.green("ok") : pc.red("FAILED"), words, count === 0 ? "" : `${name} ${count}\n${who}`]);
  }
  return table.toString();
}

function ratio(part: number, whole: number): string {
  return whole === 0 ? "-" : (part / whole).toFixed(3);
}
