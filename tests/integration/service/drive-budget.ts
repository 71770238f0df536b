import type { Publishable } from "@/lib/domain";
import { createScriptRunner, isAway } from "@/lib/guards/redis-scripts";
import { createLogger } from "@/lib/log";
import { type Admission, createGuards, type Guards } from "@/lib/snaptrade-webhook-guards";
import { RUN_LEASE_MS } from "@/lib/timings";
import { type LocalStack, startLocalStack } from "@/tests/support/local-stack";

export const LIMIT = 250;
export const SHARE = 0.75;
export const WINDOW = 60_000;
/** What background calls may reach in any window. */
export const CEILING = LIMIT * (SHARE + 0.05);

/** An answer of the provider that says nothing of limits. */
export const quiet = { accountId: "a", holdMs: 0, cooldownMs: 0, accountCooldownMs: 0, counts: {} };

/** The most calls that any window holds, counted the provider's way: one by one, by arrival. */
export function busiestWindow(calls: number[]): number {
  const sorted = [...calls].sort((a, b) => a - b);
  let from = 0;
  return sorted.reduce((most, at, i) => {
    while ((sorted[from] ?? 0) <= at - WINDOW) from += 1;
    return Math.max(most, i - from + 1);
  }, 0);
}

/** The budget on a real Redis, under a clock that only the test moves. */
export class BudgetDriver {
  now = 0;
  guards: Guards;
  #ids = 0;

  constructor(readonly stack: LocalStack<object>) {
    this.guards = this.guardsFor(LIMIT);
  }

  /** A deployment with this limit configured. */
  guardsFor(rateLimit: number): Guards {
    const { url, token } = this.stack.redis;
    const logger = createLogger({ secrets: [], level: "silent" });
    return createGuards({
      settings: {
        keyPrefix: "",
        webhookTtlMs: 86_400_000,
        queuedTtlMs: 1_800_000,
        lockTtlMs: 1_800_000,
        leaseMs: RUN_LEASE_MS,
        rateLimit,
        backgroundShare: SHARE,
        rateWindowMs: WINDOW,
      },
      scripts: createScriptRunner({ url, token, timeoutMs: 5_000, logger }),
      clock: () => this.now,
    });
  }

  async reset(): Promise<void> {
    await this.flush();
    this.now = 1_800_000_000_000;
    this.guards = this.guardsFor(LIMIT);
  }
  flush(): Promise<void> {
    return this.stack.redis.flush();
  }
  close(): Promise<void> {
    return this.stack.close();
  }

  job(calls = 3, dueInMs = 0): Publishable {
    this.#ids += 1;
    const jobId = `00000000-0000-4000-8000-${String(this.#ids).padStart(12, "0")}`;
    return { jobId, workType: "holdings", accountId: `acct-${this.#ids}`, delivery: 1, calls, dueInMs };
  }
  jobs(count: number, calls = 3, dueInMs = 0): Publishable[] {
    return Array.from({ length: count }, () => this.job(calls, dueInMs));
  }

  async reserve(jobs: Publishable[], guards: Guards = this.guards): Promise<number[]> {
    return positive(await guards.settleSlots(jobs));
  }
  /** More calls at once, spare ones too. */
  async callsNow(calls: number): Promise<number> {
    return (await this.guards.reserveCallsNow(calls, { spares: true })).calls;
  }
  admit(
    given: Publishable,
    retried = 0,
    delivery: number = given.delivery,
    guards: Guards = this.guards,
  ): Promise<Admission> {
    const token = tokenOf(given, delivery, retried);
    const job = { ...given, delivery };
    return guards.claimAccountLock({ job, retried, token, calls: given.calls, replace: false, counts: {} });
  }
  /** The end of a run that held calls and did not make them. */
  async release(
    given: Publishable,
    calls: number,
    slotAt: number,
    token = tokenOf(given, given.delivery, 0),
  ): Promise<void> {
    const end = {
      job: given,
      token,
      began: true,
      closed: false,
      unused: null,
      unmade: { calls, slotAt },
      publish: [],
      counts: {},
    };
    positive(await this.guards.releaseAccountLock(end));
  }
}

function tokenOf({ jobId }: Publishable, delivery: number, retried: number): string {
  return `token-${jobId}-${delivery}-${retried}`;
}

export async function driveBudget(): Promise<BudgetDriver> {
  return new BudgetDriver(await startLocalStack());
}

export function positive<T>(answer: T): Exclude<T, { kind: "away" }> {
  if (isAway(answer)) throw new Error("Redis is away");
  return answer as Exclude<T, { kind: "away" }>;
}
