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
import { showProgress } from "@/sandbox/demo/show-progress";
import { accountsOf, readStorm, type StormPost } from "@/sandbox/demo/storm";
import { countJobs, waitUntilQuiet } from "@/sandbox/demo/watch-jobs";
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
const DRAIN_LIMIT_MS = 150_000;
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
  await Promise.all([replay(stack, storm, options, closers, tally), killApp && killInMidStorm(stack, storm, speed)]);
  const stormSeconds = tenths(Date.now() - startedAt);
  await waitUntilQuiet(sql, DRAIN_LIMIT_MS, closers.isClosing);
  if (closers.isClosing()) throw new Error("Stopped in the middle of the storm.");
  clearInterval(reconcile);
  await progress.stop();

  const { result, culprits } = await measure(stack, sql, accounts, storm, tally);
  process.stdout.write(`${resultTable(result, { limit: rateLimit, stormSeconds, culprits })}\n`);
  if (keep) process.stdout.write(`${stackTable(stack)}\nCtrl-C stops everything.\n`);
  process.stdout.write(`${JSON.stringify(result)}\n`);
  if (keep) await untilSignal();
  return result.ok ? 0 : 1;
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

async function killInMidStorm(stack: RunningStack, storm: readonly StormPost[], speed: number): Promise<void> {
  const lengthMs = (storm.at(-1)?.atMs ?? 0) / speed;
  await sleep(lengthMs / 2);
  process.stderr.write(`SIGKILL to the app (process ${stack.app.pid()}).\n`);
  stack.app.kill();
}

async function measure(
  stack: RunningStack,
  sql: postgres.Sql,
  accounts: readonly string[],
  storm: readonly StormPost[],
  tally: Tally,
) {
  const sim = stack.snaptrade.state();
  const { deliveriesByPath } = stack.qstash.state();
  const figures = await readFigures(sql, accounts, sim.calls);
  const lost = differingKeys(await compareAccounts(sql, stack.snaptrade.accounts()));
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
    drainSeconds: tenths(drainMs),
  };
  const result: Result = { ...measured, ok: isOk(measured) };
  return { result, culprits: { lostUpdates: lost, staleAccounts: figures.staleAccounts } };
}

/** Milliseconds as seconds with one digit behind the point. */
function tenths(ms: number): number {
  return Math.round(ms / 100) / 10;
}

/** SnapTrade's side of the progress. */
function callsOf(stack: RunningStack): { callsLastMinute: number; count429: number } {
  const { calls, count429 } = stack.snaptrade.state();
  const since = new Date(Date.now() - 60_000).toISOString();
  return { callsLastMinute: calls.filter(({ at }) => at > since).length, count429 };
}
