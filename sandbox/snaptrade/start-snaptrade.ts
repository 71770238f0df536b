import type { WorkType } from "@/lib/domain";
import { type ApiCall, readApiCall, usesLegacyPrefix } from "@/sandbox/snaptrade/api-call";
import { bumpAccount } from "@/sandbox/snaptrade/bump-account";
import { CallLog } from "@/sandbox/snaptrade/call-log";
import { answerControl, type Controlled, readState, type SimState } from "@/sandbox/snaptrade/control-routes";
import { applyFault, Faults, layHeadersOver } from "@/sandbox/snaptrade/faults";
import { serveHttp } from "@/sandbox/snaptrade/http-server";
import { overLimit } from "@/sandbox/snaptrade/provider-errors";
import { answerApiCall, type Provider } from "@/sandbox/snaptrade/provider-routes";
import { RateLimits } from "@/sandbox/snaptrade/rate-limits";
import type { Reply } from "@/sandbox/snaptrade/reply";
import { seededRandom } from "@/sandbox/snaptrade/seeded-random";
import { type SimAccount, type SimConnection, seedWorld } from "@/sandbox/snaptrade/world";

export type { SimState } from "@/sandbox/snaptrade/control-routes";
export type { SimAccount } from "@/sandbox/snaptrade/world";

export type SnapTradeOptions = {
  port: number;
  clientId: string;
  consumerKey: string;
  /** Seeded `acct-0000`..., two a connection and a user: `conn-0000`, `user-0000`. */
  accounts: number;
  /** Calls a window for the client id. */
  rateLimitPerMinute: number;
  /** Length of the rolling window, 60 s unless a bench scales it. */
  windowMs?: number;
  /** Where emitted webhooks are posted; can be set later. */
  webhookUrl?: string;
  seed?: number;
  /** False: the accounts begin without transactions. */
  activities?: boolean;
  clock?: () => number;
};

export type RunningSnapTrade = {
  url: string;
  close(): Promise<void>;
  setWebhookUrl(url: string): void;
  state(): SimState;
  /** A snapshot: later changes do not show in it. */
  account(id: string): SimAccount | undefined;
  /** Gives the account a new upstream version that shows in the data. Throws for an unknown account. */
  bumpAccount(id: string, workType: WorkType): void;
  users(): { userId: string; userSecret: string }[];
  /** Snapshots of all connections and accounts, in the order of their ids. */
  connections(): SimConnection[];
  accounts(): SimAccount[];
};

const MINUTE_MS = 60_000;

/**
 * SnapTrade on 127.0.0.1: its API on the root paths that SDK 11.0.3 calls (and under `/api/v1`), and a control API under
 * `/_sim`. The same options and clock give the same data.
 */
export async function startSnapTrade(options: SnapTradeOptions): Promise<RunningSnapTrade> {
  const { clientId, consumerKey, accounts, seed = 1, clock = Date.now, windowMs = MINUTE_MS } = options;
  let webhookUrl = options.webhookUrl;
  const now = steadyClock(clock);
  const world = seedWorld(seed, accounts, now(), options.activities);
  const provider: Provider = {
    world,
    apiKey: { clientId, consumerKey },
    refreshedAt: new Map(),
    refreshSpacingMs: windowMs,
  };
  const log = new CallLog();
  const faults = new Faults();
  const limits = new RateLimits(
    { perMinute: options.rateLimitPerMinute, accountPerMinute: null, rateLimitHeaders: true, retryAfterHeader: false },
    windowMs,
  );
  const requestIds = seededRandom(seed, "request ids");

  const bump = (accountId: string, workType: WorkType): SimAccount | undefined => {
    const account = world.accounts.get(accountId);
    if (account === undefined) return undefined;
    const bumped = bumpAccount(account, workType, now());
    world.accounts.set(accountId, bumped);
    return bumped;
  };
  const controlled: Controlled = { provider, log, limits, faults, webhookUrl: () => webhookUrl, now, bump };

  const server = await serveHttp(options.port, async (raw) => {
    if (raw.target.startsWith("/_sim/")) return answerControl(controlled, raw.method, raw.target, raw.body);
    const call = readApiCall(raw);
    const reply = answerLimited(controlled, call, now());
    return { ...reply, headers: { "X-Request-ID": requestIds.uuid(), ...reply.headers } };
  });

  return {
    url: server.url,
    close: () => server.close(),
    setWebhookUrl(url) {
      webhookUrl = url;
    },
    state: () => readState(controlled),
    account: (id) => world.accounts.get(id),
    bumpAccount(id, workType) {
      if (bump(id, workType) === undefined) throw new Error(`No account ${id} in the simulator: it has ${accounts}`);
    },
    users: () => [...world.users.values()],
    connections: () => [...world.connections.values()],
    accounts: () => [...world.accounts.values()],
  };
}

/**
 * One call to the API, in one step without waiting: log, limit, fault, answer, charge. The state that a late answer
 * shows is that of the call's arrival. A call over the limit uses up no fault.
 */
function answerLimited({ provider, log, limits, faults }: Controlled, call: ApiCall, nowMs: number): Reply {
  const answered = log.arrive(nowMs, call.method, call.sentPath, call.accountId);
  const refusal = limits.refusal(nowMs, call.accountId);
  const fault = refusal === null ? faults.take(call.path, call.accountId) : null;
  const usual = () => (refusal === null ? answerApiCall(provider, call, nowMs) : overLimit(refusal.seconds));
  const reply = fault === null ? usual() : applyFault(fault, usual);
  if (reply.status === 429) log.throttled();
  else limits.charge(nowMs, call.accountId);
  const headers = {
    ...reply.headers,
    ...(usesLegacyPrefix(call) ? { Deprecation: "@1781222400" } : {}),
    ...limits.headers(nowMs, call.accountId, refusal),
  };
  return { ...reply, headers: layHeadersOver(headers, fault?.headers), onAnswered: answered };
}

/** A clock that never steps back: the rolling windows and the log rely on order. */
function steadyClock(clock: () => number): () => number {
  let latest = Number.NEGATIVE_INFINITY;
  return () => {
    latest = Math.max(latest, Math.floor(clock()));
    return latest;
  };
}
