import { isDeepStrictEqual } from "node:util";
import type { ScriptRunner } from "@/lib/guards/redis-scripts";
import type { Store } from "@/lib/store/store";
import type { RedisFront } from "@/sandbox/redis/start-redis-front";
import type { Mirror, Ports, World } from "@/tests/histories/world";
import type { LocalDatabase } from "@/tests/support/local-database";

type Parts = {
  memory: Ports;
  world: World;
  store: Store;
  scripts: ScriptRunner;
  sql: LocalDatabase["sql"];
  redis: RedisFront;
};

/** Postgres's clock goes on between its answer and the one in memory. */
const CLOCKS_MS = 2_000;
/** Listings and pruning are no part of these histories. */
const IN_MEMORY_ALONE = ["usersToList", "endTick"];

/** Every call goes to the real part and to the one in memory; an answer that differs is a fault of the history. */
export function mirrorOf({ memory, world, store, scripts, sql, redis }: Parts): Mirror {
  const differ = (what: string, real: unknown, ours: unknown) =>
    world.watch.faults.push(`${what}: really ${JSON.stringify(real)}, in memory ${JSON.stringify(ours)}`);

  const both = new Proxy(store, {
    get(target, name: keyof Store) {
      const really = target[name] as (request: unknown) => Promise<unknown>;
      const inMemory = memory.store[name] as (request: unknown) => Promise<unknown>;
      if (IN_MEMORY_ALONE.includes(name)) return inMemory;
      return async (request: unknown) => {
        const real = await really(inRealTime(request));
        lendNames(world, real);
        const ours = await inMemory(request);
        if (!agree(real, ours)) differ(`${name} ${JSON.stringify(request)}`, real, ours);
        return ours;
      };
    },
  });

  /** Postgres's rows grow older instead of its clock going on: an event is stamped by that clock. */
  let passedMs = 0;
  const inRealTime = (request: unknown): unknown =>
    isObject(request) && typeof request.eventTimestamp === "string"
      ? { ...request, eventTimestamp: new Date(Date.parse(request.eventTimestamp) - passedMs).toISOString() }
      : request;

  return {
    ports: {
      store: both,
      scripts: {
        async run(script, names, args) {
          const real = await scripts.run(script, names, args);
          const ours = await memory.scripts.run(script, names, args);
          if (!isDeepStrictEqual(texts(real), texts(ours)))
            differ(`${script.slice(-200)} ${names} ${args}`, real, ours);
          return ours;
        },
      },
    },
    async pass(ms) {
      passedMs += ms;
      const by = sql`make_interval(secs => ${ms / 1000})`;
      await sql`update snaptrade_sync_jobs set due_at = due_at - ${by}, published_at = published_at - ${by},
        failed_at = failed_at - ${by}, lease_until = lease_until - ${by}, created_at = created_at - ${by}, started_at = started_at - ${by}`;
      await sql`update snaptrade_webhook_events set received_at = received_at - ${by}, event_timestamp = event_timestamp - ${by}`;
      await sql`update snaptrade_connections set state_at = state_at - ${by}`;
      await sql`update snaptrade_accounts set state_at = state_at - ${by}, removed_at = removed_at - ${by},
        holdings_attempted_at = holdings_attempted_at - ${by},
        transactions_attempted_at = transactions_attempted_at - ${by}, transactions_cursor = case
          when transactions_cursor ? 'beganAt' then jsonb_set(transactions_cursor, '{beganAt}',
            to_jsonb((transactions_cursor ->> 'beganAt')::timestamptz - ${by})) else transactions_cursor end`;
      await command(redis, "EVAL", AGE, "0", String(ms));
    },
    flush: () => redis.flush(),
    put: (key, value) => (value === null ? command(redis, "DEL", key) : command(redis, "SET", key, value, "EX", "60")),
  };
}

/** Time passes for every key that has an end. */
const AGE = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left > 0 then redis.call('PEXPIRE', key, left - tonumber(ARGV[1])) end
end
return 1`;

async function command(redis: RedisFront, ...words: string[]): Promise<void> {
  const headers = { authorization: `Bearer ${redis.token}` };
  const response = await fetch(redis.url, { method: "POST", headers, body: JSON.stringify(words) });
  if (!response.ok) throw new Error(`Redis refused ${words[0]}: ${await response.text()}`);
}

/** The ids and fences that Postgres made are what the parts in memory go on with. */
function lendNames(world: World, answer: unknown): void {
  if (typeof answer !== "object" || answer === null) return;
  if ("fence" in answer && typeof answer.fence === "number") world.postgres.fence = answer.fence - 1;
  if ("jobIds" in answer && Array.isArray(answer.jobIds)) {
    const known = new Set(world.postgres.jobs.map(({ id }) => id));
    const fresh = answer.jobIds.map(String).filter((id) => !known.has(id));
    world.postgres.newId = () => fresh.shift() ?? world.newId();
  }
}

/**
 * Whether two answers say the same, whatever their order; `dueInMs` as far as two clocks can, and the day as far as the
 * history's is ahead of Postgres's, whose rows grow older instead.
 */
function agree(a: unknown, b: unknown, name = ""): boolean {
  if (name === "createdAt") return true;
  if (name === "today") return String(a) <= String(b);
  if (name === "dueInMs") return Math.abs(Number(a) - Number(b)) < CLOCKS_MS;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((member) => b.some((other) => agree(member, other)));
  }
  if (!isObject(a) || !isObject(b)) return a === b;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => agree(a[key], b[key], key));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function texts(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map(String) : String(reply);
}
