import type { Contestant, Usage } from "@/bench/contestant";
import type { RoundTrips } from "@/bench/count-round-trips";
import { analyseRuns, percentile, type RunFigures, recoveryMs } from "@/bench/report/analyse-runs";
import type { Scenario } from "@/bench/scenarios/scenario";
import { allowedCalls, type Capacity, leastTimeMs } from "@/bench/world/allowance";
import type { World } from "@/bench/world/start-world";
import { compareAccounts, differingKeys } from "@/sandbox/demo/compare-accounts";
import type { Tally } from "@/sandbox/demo/replay-storm";

/** Above this part of its processors the machine, and not the contestant, makes the figures. */
const BUSIEST = 0.7;
/** Half of what a call to Redis may take: where the machine stood still for longer, calls ran out of time. */
const LONGEST_PAUSE_MS = 500;
/** How far ahead of its pace the service's budget may be, as a part of the limit. */
const BURST = 0.05;

/** Null: this contestant or scenario cannot have it. Seconds are the row's. "never": no run came. */
export type Row = {
  scenario: string;
  contestant: string;
  timeScale: number;
  valid: boolean;
  machineBusy: number | null;
  /** Real time: the longest for which the bench's own process was kept from running. */
  longestPauseMs: number;
  drained: boolean | null;
  events: number;
  postedSeconds: number;
  non200: number;
  jobs: number;
  runs: number;
  wastedRuns: number;
  providerCalls: number;
  callsNeeded: number | null;
  callsOverNeeded: number | null;
  provider429: number;
  /** Of these: before what the scenario marks, or later than the background may still meet them after it. */
  unexcused429: number;
  /** Of the calls for users, which count nowhere else. */
  user429: number | null;
  maxCallsInWindow: number;
  limit: number;
  share: number;
  shareUsed: number | null;
  /** Keys whose rows differ from SnapTrade at the end; while jobs are left, it cannot be told which of them are lost. */
  differingKeys: number;
  lostUpdates: number | null;
  /** From an event to the begin of the run that covers it, where nothing else has to be waited for. */
  hopP50Seconds: number | null;
  freshP50Seconds: number | "never" | null;
  freshP99Seconds: number | "never" | null;
  freshMostSeconds: number | "never" | null;
  drainSeconds: number | "never" | null;
  drainBoundSeconds: number | null;
  drainOverBound: number | null;
  recoverySeconds: number | "never" | null;
  sleptSeconds: number | null;
  functionSeconds: number;
  deliveriesPerJob: number | null;
  redisRequests: number | null;
  postgresRequests: number | null;
  qstashRequests: number;
  /** Of single events and their runs, when all is quiet. */
  roundTrips: RoundTrips | null;
  peakMemoryMb: number | null;
  cpuSeconds: number | null;
};

type Ended = {
  world: World;
  scenario: Scenario;
  contestant: Contestant;
  tally: Tally;
  startedMs: number;
  drained: boolean | null;
  jobs: number;
  usage: Usage | null;
  busy: number | null;
  pauseMs: number;
};

/** Everything that the bench tells of one row. */
export async function rowOf(ended: Ended): Promise<Omit<Row, "roundTrips">> {
  const { world, scenario, contestant, tally, startedMs, drained, jobs, usage, busy, pauseMs } = ended;
  const { recorder, snaptrade } = world;
  const isCounted = scenario.counted ?? (() => true);
  const runs = [...recorder.runs.values()];
  const counted = <T extends { accountId: string }>(list: readonly T[]) =>
    list.filter((each) => isCounted(each.accountId));
  const figures = analyseRuns(counted(recorder.changes), counted(runs), contestant.spacingMs, world.now());
  const all = analyseRuns(recorder.changes, runs, contestant.spacingMs, world.now());
  const sim = snaptrade.state();
  const calls = sim.calls.filter(({ account }) => account === null || !scenario.forUsers?.(account));
  const times429 = calls.filter(({ status }) => status === 429).map(({ at }) => Date.parse(at));
  const isUntouched = scenario.byQStash === true && contestant.direct === true;
  const capacities = isUntouched ? recorder.capacities.slice(0, 1) : recorder.capacities;
  const accounts = counted(snaptrade.accounts());
  const differing = differingKeys(await compareAccounts(world.sql, accounts));
  const { redis, postgres, qstash, deliveries } = world.counted();
  const faultMs = isUntouched ? null : recorder.faultMs();
  // What lost updates has not recovered.
  const lost = drained === true && differing.length > 0;
  const recovered = faultMs === null || lost ? null : recoveryMs(faultMs, runs);
  const callsNeeded = scenario.drains ? figures.callsNeeded : null;
  return {
    scenario: scenario.name,
    contestant: contestant.name,
    timeScale: world.parts.clock.scale,
    valid: (busy === null || busy <= BUSIEST) && pauseMs <= LONGEST_PAUSE_MS,
    machineBusy: rounded(busy, 2),
    longestPauseMs: rounded(pauseMs, 0),
    drained,
    events: tally.sent,
    postedSeconds: rounded(tally.sent === 0 ? 0 : (world.at(tally.lastAnswerAt.getTime()) - startedMs) / 1000, 0),
    non200: tally.non200,
    jobs,
    runs: all.stored,
    wastedRuns: all.wasted,
    providerCalls: calls.length,
    callsNeeded,
    callsOverNeeded: callsNeeded === null ? null : rounded(calls.length / callsNeeded, 3),
    provider429: times429.length,
    unexcused429: times429.filter((atMs) => !isExcused(scenario, recorder.markedMs(), atMs)).length,
    user429: scenario.forUsers === undefined ? null : world.userCalls.throttled(),
    maxCallsInWindow: sim.maxCallsInWindow,
    limit: scenario.limit,
    share: contestant.share,
    shareUsed: scenario.isScarce ? rounded(shareUsed(figures, calls, capacities, contestant.share), 3) : null,
    differingKeys: differing.length,
    lostUpdates: drained === true ? differing.length : null,
    hopP50Seconds: scenario.isScarce ? null : hopSeconds(figures.hopMs),
    freshP50Seconds: seconds(percentile(figures.freshnessMs, 0.5)),
    freshP99Seconds: seconds(percentile(figures.freshnessMs, 0.99)),
    freshMostSeconds: seconds(percentile(figures.freshnessMs, 1)),
    ...drainOf(ended, figures, capacities, callsNeeded),
    recoverySeconds: faultMs === null ? null : seconds(recovered ?? Number.POSITIVE_INFINITY),
    // A queue's pace waits before it takes a job: there is no function to sleep in.
    sleptSeconds: contestant.direct ? null : rounded(recorder.seconds.slept, 1),
    functionSeconds: rounded(recorder.seconds.inFunctions, 0),
    deliveriesPerJob: deliveries === 0 || jobs === 0 ? null : rounded(deliveries / jobs, 3),
    redisRequests: contestant.direct ? null : redis,
    postgresRequests: contestant.direct ? null : postgres,
    qstashRequests: qstash,
    peakMemoryMb: rounded(usage?.peakMemoryMb ?? null, 0),
    cpuSeconds: rounded(usage?.cpuSeconds ?? null, 1),
  };
}

function isExcused({ excusedMs = 0 }: Scenario, markedMs: number | null, atMs: number): boolean {
  return markedMs !== null && atMs >= markedMs && atMs <= markedMs + excusedMs;
}

/** Calls that were answered while a change waited, of those that the share allows in that time. */
function shareUsed(
  { waiting }: RunFigures,
  calls: readonly { at: string; status: number | null }[],
  capacities: readonly Capacity[],
  share: number,
): number | null {
  const allowed = waiting.reduce((sum, [from, to]) => sum + allowedCalls(capacities, share, from, to), 0);
  if (allowed === 0) return null;
  const times = calls.filter(({ status }) => status !== 429).map(({ at }) => Date.parse(at));
  return times.filter((at) => waiting.some(([from, to]) => at >= from && at <= to)).length / allowed;
}

/** From the first event on: what the needed calls must take at that contestant's share, and never less than the events. */
function drainOf(
  { world, scenario, contestant, drained }: Ended,
  { lastStoredMs, freshnessMs }: RunFigures,
  capacities: readonly Capacity[],
  callsNeeded: number | null,
): Pick<Row, "drainSeconds" | "drainBoundSeconds" | "drainOverBound"> {
  if (callsNeeded === null || lastStoredMs === null)
    return { drainSeconds: null, drainBoundSeconds: null, drainOverBound: null };
  if (drained !== true || freshnessMs.includes(Number.POSITIVE_INFINITY))
    return { drainSeconds: "never", drainBoundSeconds: null, drainOverBound: null };
  const { share } = contestant;
  const atOnce = share < 1 ? BURST * scenario.limit : scenario.limit;
  const times = world.recorder.changes.map(({ atMs }) => atMs);
  const firstMs = Math.min(...times);
  const byCalls = leastTimeMs(capacities, share, firstMs, callsNeeded - atOnce);
  const byEvents = Math.max(...times) - firstMs;
  const boundMs = Math.max(byCalls, byEvents);
  const drainMs = lastStoredMs - firstMs;
  return {
    drainSeconds: rounded(drainMs / 1000, 1),
    drainBoundSeconds: rounded(boundMs / 1000, 1),
    drainOverBound: rounded(drainMs / boundMs, 3),
  };
}

function hopSeconds(hopMs: readonly number[]): number | null {
  const ms = percentile(hopMs, 0.5);
  return ms === null ? null : rounded(ms / 1000, 2);
}

function seconds(ms: number | null): number | "never" | null {
  if (ms === null) return null;
  return Number.isFinite(ms) ? rounded(ms / 1000, 1) : "never";
}

function rounded(value: number, digits: number): number;
function rounded(value: number | null, digits: number): number | null;
function rounded(value: number | null, digits: number): number | null {
  return value === null ? null : Math.round(value * 10 ** digits) / 10 ** digits;
}
