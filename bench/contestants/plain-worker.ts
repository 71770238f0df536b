import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Inside } from "@/bench/contestant";
import { worldNow } from "@/bench/world/clock";
import { createService } from "@/lib/composition";
import { WORK_TYPES, type WorkType } from "@/lib/domain";
import type { Env } from "@/lib/env";
import { type Reading, readHoldings } from "@/lib/jobs/read-holdings";
import { readTransactions } from "@/lib/jobs/read-transactions";
import { createLogger } from "@/lib/log";
import type { Provider } from "@/lib/provider/provider";
import { decryptSecret } from "@/lib/secrets";
import { createFunctionCaller } from "@/lib/store/call-function";
import { POSTGRES_TIMEOUT_MS } from "@/lib/timings";

export const plainJob = z.object({ jobId: z.string(), workType: z.enum(WORK_TYPES), accountId: z.string() });
export type PlainJob = z.infer<typeof plainJob>;

const taken = z.object({ isNew: z.boolean(), jobs: z.array(plainJob) });
const made = taken.pick({ jobs: true });
const account = z.object({
  userId: z.string(),
  secretCiphertext: z.string(),
  watermark: z.string().nullable(),
  today: z.string(),
  storedBalances: z.boolean(),
  storedPositions: z.boolean(),
  storedOrders: z.boolean(),
});

export type PlainEvent = {
  webhookId: string;
  payload: string;
  accountId: string | null;
  workTypes: readonly WorkType[];
};

/** `hourly`: access was taken away, which no retry of the next minutes mends; `never`: no retry can help. */
type Failed = { kind: "failed"; retry: "soon" | "hourly" | "never"; reason: string };
type Ended =
  | { kind: "done" }
  /** The provider answered 429 (or is busy), and says how long it wants to be left alone. */
  | { kind: "put_off"; waitMs: number }
  | Failed;
/** How a run ended, and how many calls it made. */
export type RunEnd = Ended & { calls: number };

/** The service's own wait after 400, 401 and 403. */
export const HOUR_MS = 3_600_000;
const WITHOUT_ACCESS = [400, 401, 403];
/** More than any run makes. */
const CALLS_LEFT = 1_000_000;

/**
 * What every other contestant shares: an event row with its jobs, and this service's own reading and storing code,
 * without its protocol (no fence, no slot, no lock). `provider` is what the contestant makes of the provider: it may sleep.
 */
export function createPlainWorker({ clock, tell }: Inside, env: Env, wrap: (provider: Provider) => Provider) {
  const call = createFunctionCaller({ ...env.supabase, timeoutMs: POSTGRES_TIMEOUT_MS });
  const service = createService(env, {
    logger: createLogger({ secrets: env.secrets, level: "silent" }),
    clock: () => worldNow(clock),
  });
  service.provider = wrap(service.provider);
  const nothing = z.object({});

  return {
    takeEvent: (event: PlainEvent) => call("bench_take_event", event, taken),
    /** A job for the holdings of each account. */
    makeJobs: async (accountIds: readonly string[]) => (await call("bench_make_jobs", { accountIds }, made)).jobs,

    /** One run, until everything is stored or something failed. */
    async run(job: PlainJob): Promise<RunEnd> {
      const calls = { left: CALLS_LEFT, slotAt: 0 };
      const end = await read(job, calls).catch((error: unknown) => failed("soon", String(error)));
      return { ...end, calls: CALLS_LEFT - calls.left };
    },
  };

  async function read(job: PlainJob, calls: Reading["calls"]): Promise<Ended> {
    const { jobId, workType, accountId } = job;
    const known = await call("bench_begin", job, account.nullable());
    if (known === null) return { kind: "done" };
    const run = randomUUID();
    tell({ is: "begun", run, workType, accountId, atMs: worldNow(clock) });
    const { userId, secretCiphertext } = known;
    const reading: Reading = {
      accountId,
      user: { userId, userSecret: decryptSecret(secretCiphertext, env.snaptrade.secretsKeys, userId) },
      begun: {
        ...known,
        ...{ outcome: "begun", fence: 0, attempts: 1, tookOver: false, readsAccount: false },
        ...{ calls: 0, failedParts: [], cursor: null },
      },
      calls,
      watch: { see: async (answer) => answer },
      signal: new AbortController().signal,
    };
    const storing = {
      ...service,
      store: {
        ...service.store,
        async commitTransactions(request: Parameters<typeof service.store.commitTransactions>[0]) {
          const { rows, watermark, cursor } = request;
          const done = cursor === null;
          await call("bench_store", { jobId, accountId, rows, watermark, done }, nothing);
          return done ? ({ outcome: "done", publish: null } as const) : ({ outcome: "page" } as const);
        },
      },
    };
    const end =
      workType === "holdings" ? await readHoldings(service, reading) : await readTransactions(storing, reading, jobId);
    if (end.kind === "read") {
      await call("bench_store", { jobId, accountId, holdings: end.parts.holdings, done: true }, nothing);
    } else if (end.kind === "defer") {
      return { kind: "put_off", waitMs: end.notBeforeMs };
    } else if (end.kind === "fail") {
      const retry = end.permanent ? "never" : WITHOUT_ACCESS.includes(end.status) ? "hourly" : "soon";
      return failed(retry, end.reason);
    } else if (end.kind !== "committed") {
      return failed("never", end.kind);
    }
    tell({ is: "stored", run, atMs: worldNow(clock) });
    return { kind: "done" };
  }
}

function failed(retry: Failed["retry"], reason: string): Failed {
  return { kind: "failed", retry, reason };
}
