import { randomBytes } from "node:crypto";
import getPort from "get-port";
import postgres from "postgres";
import type { Parts } from "@/bench/contestant";
import { type WorldClock, wallMs, worldNow, worldTime } from "@/bench/world/clock";
import type { Databases } from "@/bench/world/databases";
import { createRecorder } from "@/bench/world/recorder";
import { createUserCalls } from "@/bench/world/user-calls";
import { WORK_TYPES } from "@/lib/domain";
import { workerPath } from "@/lib/jobs/publisher";
import { startQStash } from "@/sandbox/qstash/start-qstash";
import type { RedisServer } from "@/sandbox/redis/start-redis";
import { startRedisFront } from "@/sandbox/redis/start-redis-front";
import { serviceEnv } from "@/sandbox/service-env";
import { startSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { writeWire } from "@/sandbox/snaptrade/wire";
import type { Closers } from "@/sandbox/stack/closers";
import { seedDatabase } from "@/sandbox/stack/seed-database";
import { SNAPTRADE_KEYS } from "@/sandbox/stack/start-stack";
import { startSupabase } from "@/sandbox/supabase/start-supabase";

const QSTASH_KEYS = { token: "bench-token", currentSigningKey: "sig_bench_current", nextSigningKey: "sig_bench_next" };
const HOST = "http://127.0.0.1";

/** What a call to the provider takes, in the row's time. */
const PROVIDER_LATENCY_MS = 500;
const WINDOW_MS = 60_000;
const ALWAYS = 1_000_000_000;

export type WorldOptions = { scale: number; accounts: number; limit: number; activities?: boolean; kills?: true };
export type Servers = { databases: Databases; redis: Extract<RedisServer, { kind: "server" }> };
/** Requests that arrived at the fronts, and deliveries of jobs. */
type Counted = { redis: number; postgres: number; qstash: number; deliveries: number };
export type ProviderFault = { match: object; respond: { status?: number; delayMs?: number } };

/**
 * Everything around one contestant for one row: a fresh database, an empty Redis, a QStash and a SnapTrade, all on one
 * clock. `accounts` are there and were synced just now.
 */
export async function startWorld(servers: Servers, options: WorldOptions, closers: Closers) {
  const { scale, accounts, limit, activities = true, kills } = options;
  const clock: WorldClock = { scale, startMs: Date.now() };
  const recorder = createRecorder();
  const secretsKey = randomBytes(32);
  const port = await getPort({ host: "127.0.0.1" });

  const snaptrade = await startSnapTrade({
    ...SNAPTRADE_KEYS,
    ...{ port: 0, accounts, rateLimitPerMinute: limit, clock: () => worldNow(clock), activities },
  });
  closers.add("SnapTrade", snaptrade.close);
  const qstash = await startQStash({ ...QSTASH_KEYS, port: 0, timeScale: scale, globalParallelism: 1_000 });
  closers.add("QStash", qstash.close);

  const name = `row_${randomBytes(6).toString("hex")}`;
  const databaseUrl = await servers.databases.create(name, clock);
  closers.add("the row's database", () => servers.databases.drop(name));
  const { users, connections } = { users: snaptrade.users(), connections: snaptrade.connections() };
  await seedDatabase(databaseUrl, { users, connections, accounts: snaptrade.accounts(), secretsKey, fresh: false });
  const sql = postgres(databaseUrl, { max: 2, onnotice: () => undefined });
  closers.add("the bench's connection", () => sql.end({ timeout: 1 }));
  const supabase = await startSupabase({ databaseUrl });
  closers.add("Supabase API", supabase.close);
  const redis = await startRedisFront({ redisUrl: servers.redis.url });
  await redis.flush();
  closers.add("Redis front", redis.close);

  const parts: Parts = {
    clock,
    port,
    databaseUrl,
    redisUrl: servers.redis.url,
    qstash,
    hear: recorder.hear,
    ...(kills === undefined ? {} : { kills }),
    env: serviceEnv({
      appUrl: `${HOST}:${port}`,
      cronSecret: "bench-cron-secret",
      secretsKey: secretsKey.toString("base64"),
      supabase,
      redis,
      qstash: { url: qstash.url, ...QSTASH_KEYS },
      snaptrade: { url: snaptrade.url, ...SNAPTRADE_KEYS, rateLimitPerMinute: limit },
    }),
  };

  async function control(method: string, name: string, body: unknown): Promise<void> {
    const answer = await fetch(`${snaptrade.url}/_sim/${name}`, { method, body: writeWire(body) });
    if (!answer.ok) throw new Error(`The simulator refused ${method} ${name}: ${await answer.text()}`);
  }
  recorder.capacity({ fromMs: clock.startMs, limit, users: 0 });

  const counted = (): Counted => ({
    redis: redis.requests(),
    postgres: supabase.requests(),
    qstash: qstash.state().requests,
    deliveries: WORK_TYPES.reduce((sum, type) => sum + (qstash.state().deliveriesByPath[workerPath(type)] ?? 0), 0),
  });
  let before = counted();

  return {
    parts,
    recorder,
    snaptrade,
    qstash,
    redis,
    supabase,
    sql,
    /** Here the row begins: calls, windows, requests and deliveries of before count no more. */
    async begin(): Promise<void> {
      await control("POST", "reset", {});
      recorder.clear();
      before = counted();
    },
    /** At the fronts since the row began. */
    counted(): Counted {
      const { redis, postgres, qstash, deliveries } = counted();
      return {
        redis: redis - before.redis,
        postgres: postgres - before.postgres,
        qstash: qstash - before.qstash,
        deliveries: deliveries - before.deliveries,
      };
    },
    now: () => worldNow(clock),
    /** The row's time at a moment of the wall clock. */
    at: (wallClockMs: number) => worldTime(clock, wallClockMs),
    /** In the order of the calls: the first that matches counts. */
    fault: ({ match, respond }: ProviderFault) => control("POST", "faults", { match, respond, times: ALWAYS }),
    async setLimit(perMinute: number): Promise<void> {
      const fromMs = worldNow(clock);
      await control("PUT", "limits", { perMinute });
      // What the last window holds fills a lower limit until enough of it has left.
      const held = snaptrade
        .state()
        .calls.filter(({ at, status }) => status !== 429 && Date.parse(at) > fromMs - WINDOW_MS).length;
      const filledMs = WINDOW_MS * Math.max(0, 1 - perMinute / Math.max(1, held));
      if (filledMs > 0) recorder.capacity({ fromMs, limit: 0, users: 0 });
      recorder.capacity({ fromMs: fromMs + filledMs, limit: perMinute, users: 0 });
    },
    userCalls: createUserCalls(clock, { ...SNAPTRADE_KEYS, baseUrl: snaptrade.url }),
    latencyMs: Math.round(wallMs(clock, PROVIDER_LATENCY_MS)),
  };
}

export type World = Awaited<ReturnType<typeof startWorld>>;
