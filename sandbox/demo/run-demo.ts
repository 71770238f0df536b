import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { WORK_TYPES } from "@/lib/domain";
import { workerPath } from "@/lib/jobs/publisher";
import { compareAccounts, differingKeys } from "@/sandbox/demo/compare-accounts";
import { makeStorm } from "@/sandbox/demo/make-storm";
import { createPoster } from "@/sandbox/demo/post-webhook";
import { readFigures } from "@/sandbox/demo/read-figures";
import { CONNECTIONS, emptyTally, replayStorm, type Tally } from "@/sandbox/demo/replay-storm";
import { isOk, type Result, resultTable } from "@/sandbox/demo/report";
import { type ShownProgress, showProgress } from "@/sandbox/demo/show-progress";
import { accountsOf, readStorm, type StormPost } from "@/sandbox/demo/storm";
import { countCallsDue, countJobs, drainLimitMs, openKeys, waitUntilQuiet } from "@/sandbox/demo/watch-jobs";
import type { Closers } from "@/sandbox/stack/closers";
import { CRON_PATHS } from "@/sandbox/stack/crons";
import { stackTable } from "@/sandbox/stack/describe-stack";
import { findFreeBase, portsFrom } from "@/sandbox/stack/ports";
import { untilSignal } from "@/sandbox/stack/run-until-stopped";
import { type RunningStack, SNAPTRADE_KEYS, startStack } from "@/sandbox/stack/start-stack";

export type DemoOptions = {
  /** A recorded storm; absent: one is made. */
  file?: string;
  speed: number;
  rateLimit: number;
  killApp: boolean;
  keep: boolean;
};

const ACCOUNTS = 300;
const STORM = { seed: 1, accounts: ACCOUNTS, events: 2_000, lengthMs: 45_000, ...SNAPTRADE_KEYS };
/** Recorded events are as old as their recording; the retention goes along, so that nothing is pruned meanwhile. */
const ADMIT_OLD_EVENTS = { SNAPTRADE_WEBHOOK_MAX_AGE: "3650d", SNAPTRADE_RETENTION: "3660d" };
/** As Vercel calls it; oftener after a crash, whose leases it takes back. */
const RECONCILE_EVERY_MS = { usually: 60_000, afterKill: 5_000 };

/** Starts the stack, replays the storm, waits until all is quiet, compares, reports; answers the exit code. */
export async function runDemo(options: DemoOptions, closers: Closers): Promise<number> {
  const { file, speed, rateLimit, killApp, keep } = options;
  const storm = file === undefined ? makeStorm({ ...STORM, startMs: Date.now() }) : await readStorm(file);
  const stack = await startStack(
    {
      ports: portsFrom(await findFreeBase()),
      accounts: accountsOf(storm, ACCOUNTS),
      rateLimitPerMinute: rateLimit,
      app: "start",
      env: ADMIT_OLD_EVENTS,
      fresh: false,
      crons: false,
    },
    closers,
  );
  const sql = postgres(stack.supabase.databaseUrl, { max: 2, onnotice: () => undefined });
  closers.add("demo's connection", () => sql.end({ timeout: 1 }));
  const accounts = stack.snaptrade.accounts().map(({ accountId }) => accountId);

  const tally = emptyTally();
  const progress = showProgress(async () => ({
    ...tally,
    ...(await countJobs(sql)),
    ...callsOf(stack),
    events: storm.length,
    limit: rateLimit,
  }));
  const reconcile = setInterval(
    () => void stack.callCron(CRON_PATHS.reconcile),
    killApp ? RECONCILE_EVERY_MS.afterKill : RECONCILE_EVERY_MS.usually,
  );
  closers.add("demo", () => {
    clearInterval(reconcile);
    return progress.stop();
  });

  const startedAt = Date.now();
  const lengthMs = (storm.at(-1)?.atMs ?? 0) / speed;
  progress.note(`Posting ${storm.length} events of ${accounts.length} accounts in ${seconds(lengthMs)} s ...`);
  await Promise.all([
    replay(stack, storm, options, closers, tally),
    killApp && killInMidStorm(stack, lengthMs / 2, progress),
  ]);
  const postedSeconds = seconds(Date.now() - startedAt);
  const drain = await drained(sql, rateLimit, closers, progress);
  if (closers.isClosing()) throw new Error("Stopped in the middle of the storm.");
  clearInterval(reconcile);
  await progress.stop();

  process.stderr.write(`Comparing ${stack.snaptrade.accounts().length} accounts ...\n`);
  const { result, culprits, openKeys: left } = await measure({ stack, sql, accounts, storm, tally, drain });
  const circumstances = {
    limit: rateLimit,
    postedSeconds,
    stormSeconds: seconds(lengthMs),
    killed: killApp,
    notDrained: drain.quiet ? null : { withinSeconds: drain.seconds, openKeys: left },
    culprits,
  };
  process.stdout.write(`${resultTable(result, circumstances)}\n`);
  if (keep) process.stdout.write(`\n${stackTable(stack)}\nCtrl-C stops everything.\n`);
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (keep) await untilSignal();
  return result.ok ? 0 : 1;
}

type Drain = { quiet: boolean; seconds: number };

/** Waits until no job is left, as long as the calls that are due may take. */
async function drained(sql: postgres.Sql, limit: number, closers: Closers, progress: ShownProgress): Promise<Drain> {
  const callsDue = await countCallsDue(sql);
  const limitMs = drainLimitMs(callsDue, limit);
  progress.note(`Waiting until all is quiet: about ${callsDue} calls are due; at most ${seconds(limitMs)} s ...`);
  return { quiet: await waitUntilQuiet(sql, limitMs, closers.isClosing), seconds: seconds(limitMs) };
}

async function replay(
  stack: RunningStack,
  storm: readonly StormPost[],
  { speed, killApp }: DemoOptions,
  closers: Closers,
  tally: Tally,
): Promise<void> {
  const poster = createPoster(`${stack.app.url}/api/snaptrade/webhook`, CONNECTIONS);
  closers.add("poster", poster.close);
  await replayStorm(
    storm,
    {
      speed,
      post: poster.post,
      change(accountId, workType) {
        // An event of an account that SnapTrade does not have changes nothing there.
        if (stack.snaptrade.account(accountId) !== undefined) stack.snaptrade.bumpAccount(accountId, workType);
      },
      sendAgain: killApp,
      stopped: closers.isClosing,
    },
    tally,
  );
  poster.close();
}

async function killInMidStorm(stack: RunningStack, afterMs: number, progress: ShownProgress): Promise<void> {
  await sleep(afterMs);
  progress.note(`SIGKILL to the app (process ${stack.app.pid()}).`);
  stack.app.kill();
}

type Measured = {
  stack: RunningStack;
  sql: postgres.Sql;
  accounts: readonly string[];
  storm: readonly StormPost[];
  tally: Tally;
  drain: Drain;
};

async function measure({ stack, sql, accounts, storm, tally, drain }: Measured) {
  const sim = stack.snaptrade.state();
  const { deliveriesByPath } = stack.qstash.state();
  const open = new Set(await openKeys(sql));
  const figures = await readFigures(sql, accounts, sim.calls);
  const differing = differingKeys(await compareAccounts(sql, stack.snaptrade.accounts()));
  const lost = differing.filter((key) => !open.has(key));
  const drainMs = Math.max(0, (figures.lastEndAt ?? tally.lastAnswerAt).getTime() - tally.lastAnswerAt.getTime());
  const { accepted, duplicate, coalesced, other, non200 } = tally;
  const measured = {
    events: storm.length,
    accepted,
    duplicate,
    coalesced,
    other,
    non200,
    jobs: figures.jobs,
    runs: figures.runs,
    wastedRuns: figures.wastedRuns,
    deliveries: WORK_TYPES.reduce((sum, workType) => sum + (deliveriesByPath[workerPath(workType)] ?? 0), 0),
    callsNeeded: figures.callsNeeded,
    providerCalls: sim.calls.length,
    provider429: sim.count429,
    maxCallsInWindow: sim.maxCallsInWindow,
    lostUpdates: lost.length,
    staleAccounts: figures.staleAccounts.length,
    drainSeconds: drain.quiet ? seconds(drainMs) : drain.seconds,
  };
  const result: Result = { ...measured, ok: isOk(measured, drain.quiet) };
  return { result, culprits: { lostUpdates: lost, staleAccounts: figures.staleAccounts }, openKeys: open.size };
}

/** With one digit behind the point. */
function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

/** SnapTrade's side of the progress. */
function callsOf(stack: RunningStack): { callsLastMinute: number; count429: number } {
  const { calls, count429 } = stack.snaptrade.state();
  const since = new Date(Date.now() - 60_000).toISOString();
  return { callsLastMinute: calls.filter(({ at }) => at > since).length, count429 };
}
