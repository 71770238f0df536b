import type { RacePoint } from "@/lib/service";
import {
  comparisonDue,
  givenUp,
  holdDeliveries,
  letDeliver,
  lostPublish,
  news,
  overdue,
  pastItsLease,
  runWithTrailingJob,
  stale,
  sweep,
  tick,
  transactionNews,
  waiting,
  wholeHistory,
} from "@/tests/support/crash-moves";
import { type CrashWorld, LONG_HISTORY } from "@/tests/support/crash-world";

const MINUTE_S = 60;
/** I8: the lease, one period of the cron; slots are free at once here. */
const LEASE_AND_CRON_S = 2 * MINUTE_S;
/** A failed attempt and a message that QStash gave up come again a minute later; then the grace and one period. */
const DELAY_GRACE_AND_CRON_S = MINUTE_S + 30 + MINUTE_S;
const SNAPTRADE_RETRY_S = 30 * MINUTE_S;
const SWEEP_PERIOD_S = 15 * MINUTE_S;

/** One way to a race point, and what may be left to do after a crash there. */
export type CrashRow = {
  /** What was under way. */
  flow: string;
  accounts?: number | "long history";
  /** Up to the moment before. */
  prepare?(world: CrashWorld, account: string, accounts: string[]): Promise<unknown>;
  /** Leads the process to the point. */
  trigger(world: CrashWorld, account: string): Promise<unknown>;
  /** Which arrival is killed, counted from 1; default 1. */
  nth?: number;
  /** What was held back or at fault is as usual again. */
  after?(world: CrashWorld, account: string): Promise<unknown>;
  /** When the first tick of reconcile comes; default: shortly before the lease ends, which is the longest way. */
  firstTickS?: number;
  withinS: number;
  /** Exactly so many calls to SnapTrade and so many jobs, from the first event on. */
  calls: number;
  /** Both jobs of a new account read it if they begin at once. */
  callsAtMost?: number;
  jobs?: number;
  /** Whether each event answered 200 must have its row; default true. */
  rows?: boolean;
};

const intake = { flow: "an event", trigger: news, withinS: LEASE_AND_CRON_S, calls: 3 };
const covered = {
  ...intake,
  flow: "an event that a queued job covers",
  prepare: async (world: CrashWorld, account: string) => {
    await holdDeliveries(world);
    await news(world, account);
  },
  after: letDeliver,
};
const run = { flow: "a run of holdings", trigger: news, withinS: LEASE_AND_CRON_S, calls: 3 };
const trailed: CrashRow = {
  ...run,
  flow: "a run with a trailing job",
  prepare: runWithTrailingJob,
  trigger: (world) => world.letGo(),
  calls: 6,
  jobs: 2,
};
const pages = {
  flow: "a run of three pages",
  accounts: "long history",
  prepare: wholeHistory,
  trigger: transactionNews,
  withinS: LEASE_AND_CRON_S,
  calls: 3,
} as const;
const sweeping = { flow: "a sweep", prepare: stale, trigger: sweep, withinS: LEASE_AND_CRON_S, calls: 3 };
/** The tick itself dies: the next one comes a period later. */
const ticking = { trigger: tick, firstTickS: MINUTE_S, withinS: LEASE_AND_CRON_S, calls: 3 };
const republishing = { ...ticking, flow: "a tick with a job whose message was lost", prepare: overdue };
const releasing = {
  ...ticking,
  flow: "a tick with events that waited",
  accounts: 2,
  prepare: waiting,
  calls: 10,
  callsAtMost: 12,
  jobs: 4,
};

/** Every race point; each with at least one way to it. */
export const CRASH_ROWS: Record<RacePoint, CrashRow[]> = {
  "intake:claimed": [{ ...intake, withinS: SNAPTRADE_RETRY_S }],
  "intake:accepted": [intake],
  "intake:claims-released": [
    {
      ...intake,
      flow: "an event that Postgres did not take",
      prepare: async ({ stack }) => stack.supabase.fault({ outage: true, times: 1 }),
      withinS: SNAPTRADE_RETRY_S,
    },
  ],
  "intake:settled": [intake],
  "intake:published": [{ ...intake, prepare: holdDeliveries, after: letDeliver }],
  "intake:answered": [{ ...covered, rows: false }],
  "intake:verified": [covered],
  "intake:verify-settled": [
    {
      ...intake,
      flow: "an event that a queued key covers wrongly",
      prepare: async (world, account) => {
        const { jobId = "" } = await news(world, account);
        await world.quiet();
        await world.redis("SET", `snaptrade:account:queued:holdings:${account}`, jobId, "EX", 60);
      },
      calls: 6,
      jobs: 2,
    },
  ],
  "publish:slotted": [releasing],
  "publish:sent": [
    {
      ...intake,
      flow: "an event whose message QStash refused",
      prepare: async ({ stack }) => stack.qstash.faults.set({ publish: { status: 500, times: 1 } }),
    },
  ],
  "run:admitted": [run],
  "run:deferred": [
    {
      ...run,
      flow: "a delivery in a cooldown",
      prepare: async (world, account) => {
        await holdDeliveries(world);
        await news(world, account);
        const none = { holdMs: 0, cooldownMs: 0, counts: {} };
        await world.service.guards.observeLimits({ accountId: account, ...none, accountCooldownMs: 20_000 });
      },
      trigger: letDeliver,
    },
  ],
  "run:begun": [run],
  "run:readmitted": [
    {
      ...run,
      flow: "a run whose lock a lost one holds",
      prepare: (world, account) =>
        world.redis("SET", `snaptrade:account:lock:holdings:${account}`, `lost:${world.now() + 45_000}`, "EX", 90),
    },
  ],
  "run:given-back": [
    {
      ...run,
      flow: "a run that Redis left",
      prepare: async (world, account) => {
        const { held } = await world.hold("run:begun");
        await news(world, account);
        await held;
        world.stack.redis.fault({ outage: true });
      },
      trigger: (world) => world.letGo(),
      after: async ({ stack }) => stack.redis.clearFaults(),
    },
  ],
  "run:unqueued": [run],
  "run:calls-reserved": [pages],
  "run:part": [{ ...run, calls: 4 }],
  "run:limits-told": [
    {
      ...run,
      flow: "a run that is told of few calls left",
      prepare: (world, account) =>
        world.fault({ accountId: account }, { headers: { "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "10" } }),
      calls: 4,
    },
  ],
  "run:page": [{ ...pages, nth: 2, calls: 4 }],
  "run:page-committed": [pages],
  "run:read": [{ ...run, calls: 6 }],
  "run:committed": [
    run,
    trailed,
    {
      ...run,
      flow: "a failed attempt",
      prepare: (world, accountId) => world.fault({ accountId, path: "balances" }, { status: 500 }),
      withinS: DELAY_GRACE_AND_CRON_S,
      calls: 6,
    },
  ],
  "run:released": [run, trailed],
  "run:published": [run],
  "callback:handed-out": [
    {
      flow: "a message that QStash gave up",
      prepare: lostPublish,
      trigger: givenUp,
      after: givenUp,
      withinS: DELAY_GRACE_AND_CRON_S,
      calls: 3,
    },
  ],
  "sweep:started": [{ ...sweeping, withinS: SWEEP_PERIOD_S }],
  "sweep:listed": [sweeping],
  "sweep:reserved": [sweeping],
  "sweep:accepted": [sweeping],
  "sweep:published": [sweeping],
  "sweep:page-published": [sweeping, { ...sweeping, flow: "a sweep's second page", nth: 2 }],
  "reconcile:taken": [{ ...ticking, flow: "a tick with a run past its lease", prepare: pastItsLease }],
  "reconcile:listed": [republishing],
  "reconcile:reserved": [republishing],
  "reconcile:handed-out": [republishing],
  "reconcile:published": [republishing],
  "reconcile:waiting-released": [releasing],
  "reconcile:user-listed": [
    {
      ...ticking,
      flow: "a tick that finds a lost webhook",
      prepare: async (world, account) => {
        world.bump(account);
        await comparisonDue(world, account);
      },
    },
  ],
  "reconcile:marked": [
    {
      ...ticking,
      flow: "a tick whose listing failed",
      prepare: async (world, account) => {
        await comparisonDue(world, account);
        await world.fault({ path: "/authorizations" }, { status: 500 });
      },
      calls: 0,
      jobs: 0,
    },
  ],
};

export function accountsOf(world: CrashWorld, row: CrashRow): string[] {
  return row.accounts === "long history" ? [LONG_HISTORY] : world.take(row.accounts ?? 1);
}
