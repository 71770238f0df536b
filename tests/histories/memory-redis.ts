import * as lua from "@/lib/guards/lua-scripts";
import { AWAY, type ScriptRunner } from "@/lib/guards/redis-scripts";
import { type MemoryBudget, openBudget } from "@/tests/histories/memory-budget";

type Entry = { value: string; expiresAt: number };
type Script = (redis: MemoryRedis, keys: string[], args: string[]) => unknown;

/**
 * Redis in memory: what each script of ours does, said again in TypeScript, over an injected clock. The differential test
 * holds it to the Lua on a real Redis, reply by reply. It exists because a hundred thousand histories cannot wait for one.
 */
export class MemoryRedis {
  readonly #entries = new Map<string, Entry>();
  readonly #hashes = new Map<string, Map<string, string>>();
  /** What the last write of each queued key replaced: a failover may bring it back. */
  readonly #before = new Map<string, string | null>();

  constructor(readonly now: () => number) {}

  runner(): ScriptRunner {
    return {
      run: async (script, keys, args) => {
        const run = SCRIPTS.get(script);
        return run === undefined ? AWAY : run(this, keys, args.map(String));
      },
    };
  }

  get(key: string): string | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    if (entry.expiresAt > this.now()) return entry.value;
    this.#entries.delete(key);
    return null;
  }
  set(key: string, value: string, ttlMs: number): void {
    this.#remember(key);
    this.#entries.set(key, { value, expiresAt: this.now() + ttlMs });
  }
  delete(key: string): number {
    const had = this.get(key) !== null;
    if (had) this.#remember(key);
    this.#entries.delete(key);
    return had ? 1 : 0;
  }
  hash(key: string): Map<string, string> {
    const hash = this.#hashes.get(key) ?? new Map<string, string>();
    this.#hashes.set(key, hash);
    return hash;
  }
  flush(): void {
    for (const key of this.#entries.keys()) this.#remember(key);
    this.#entries.clear();
    this.#hashes.clear();
  }
  /** A failover undoes the last write of a key. Answers what stands there now. */
  undo(key: string): string | null {
    const before = this.#before.get(key) ?? null;
    if (before === null) this.delete(key);
    else this.set(key, before, 60_000);
    return before;
  }
  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.get(key) !== null).sort();
  }
  #remember(key: string): void {
    this.#before.set(key, this.get(key));
  }
}

function count(redis: MemoryRedis, key: string, args: string[], from: number): void {
  const hash = redis.hash(key);
  for (let i = from; i + 1 < args.length; i += 2) add(hash, args[i] ?? "", Number(args[i + 1]));
}
function add(hash: Map<string, string>, field: string, amount: number): void {
  hash.set(field, String(Number(hash.get(field) ?? 0) + amount));
}
const seconds = (text: string | undefined) => Number(text) * 1000;

/** Slots for pairs of (calls, dueInMs) from `from` on. */
function reserveAll(budget: MemoryBudget, slots: string[], args: string[], from: number): string[] {
  return slots.map((slot, i) =>
    budget.wait(budget.reserve(slot, Number(args[from + 2 * i]), budget.now + Number(args[from + 2 * i + 1])).at),
  );
}

const SCRIPTS = new Map<string, Script>([
  [
    lua.LUA_CLAIM,
    (redis, [webhook = "", metrics = "", queued], [mine = "", ttl, queuedTtl, shortCut, ...fields]) => {
      if (redis.get(webhook) === "accepted") {
        add(redis.hash(metrics), fields[0] ?? "", 1);
        return ["duplicate", ""];
      }
      if (redis.get(webhook) !== mine) redis.set(webhook, mine, seconds(ttl));
      if (queued === undefined) return ["claimed", ""];
      const found = redis.get(queued);
      if (shortCut !== "1" || found === null || found.startsWith("pending:")) {
        if (found !== mine) redis.set(queued, mine, seconds(queuedTtl));
        return ["claimed", ""];
      }
      redis.set(webhook, "accepted", seconds(ttl));
      add(redis.hash(metrics), fields[1] ?? "", 1);
      add(redis.hash(metrics), fields[2] ?? "", 1);
      return ["coalesced", found];
    },
  ],
  [
    lua.LUA_UNCLAIM,
    (redis, keys, [mine]) => keys.reduce((gone, key) => gone + (redis.get(key) === mine ? redis.delete(key) : 0), 0),
  ],
  [
    lua.LUA_SETTLE,
    (redis, keys, args) => {
      const budget = openBudget(redis, keys, args);
      const [, , metrics = "", webhook = "", queued = "", ...slots] = keys;
      redis.set(webhook, "accepted", seconds(args[5]));
      if (queued !== "" && !args[7]) redis.delete(queued);
      else if (queued !== "" && redis.get(queued) === args[4]) redis.set(queued, args[7] ?? "", seconds(args[6]));
      const waits = reserveAll(budget, slots, args, 9);
      count(redis, metrics, args, 9 + 2 * slots.length);
      return waits;
    },
  ],
  [lua.LUA_ADMIT, admit],
  [lua.LUA_UNQUEUE, (redis, [queued = ""]) => redis.delete(queued)],
  [
    lua.LUA_RESERVE_NOW,
    (redis, keys, args) => {
      const budget = openBudget(redis, keys, args);
      const free = budget.nextFree(Number(args[4]), args[5] === "1");
      if (free.base > budget.now) return ["0", "0"];
      const { at } = budget.take(free);
      budget.spend(free.calls, free.isSpare);
      return [String(free.calls), at.toFixed(0)];
    },
  ],
  [
    lua.LUA_RELEASE,
    (redis, keys, args) => {
      const budget = openBudget(redis, keys, args);
      const [, , metrics = "", lock = "", queued = "", unused = "", ...slots] = keys;
      if (redis.get(lock)?.replace(/:\d+$/, "") === args[4]) {
        redis.delete(lock);
        if (Number(args[7]) > 0) budget.addSpare(Number(args[8]), Number(args[7]));
        if (unused !== "") budget.giveBack(unused);
      }
      if (args[6] === "2" || (args[6] === "1" && redis.get(queued) === args[5])) redis.delete(queued);
      const waits = reserveAll(budget, slots, args, 10);
      count(redis, metrics, args, 10 + 2 * slots.length);
      return waits;
    },
  ],
  [
    lua.LUA_RESERVE_BULK,
    (redis, keys, args) => {
      const budget = openBudget(redis, keys, args);
      const waits: string[] = [];
      for (const [i, slot] of keys.slice(2).entries()) {
        const had = budget.find(slot);
        const known = had !== null && had.at >= budget.now - budget.late;
        const calls = Number(args[5 + i]);
        if (!known && budget.nextFree(calls, false).base > budget.now + Number(args[4])) break;
        waits.push(budget.wait(budget.reserve(slot, calls, 0, true).at));
      }
      return waits;
    },
  ],
  [lua.LUA_RESERVE, (redis, keys, args) => reserveAll(openBudget(redis, keys, args), keys.slice(2), args, 4)],
  [
    lua.LUA_GIVE_BACK,
    (redis, keys, args) => {
      const budget = openBudget(redis, keys, args);
      for (const slot of keys.slice(3).reverse()) budget.giveBack(slot);
      count(redis, keys[2] ?? "", args, 4);
      return 1;
    },
  ],
  [
    lua.LUA_FIND_SLOTS,
    (redis, keys, args) => {
      const budget = openBudget(redis, keys, args);
      return keys.slice(2).map((slot) => {
        const found = budget.find(slot);
        return found === null ? "none" : (found.at - budget.now).toFixed(0);
      });
    },
  ],
  [lua.LUA_OBSERVE, observe],
  [
    lua.LUA_CLAIM_ALERT,
    (redis, [alert = ""], [ttl]) => {
      if (redis.get(alert) !== null) return 0;
      redis.set(alert, "raised", seconds(ttl));
      return 1;
    },
  ],
]);

function admit(redis: MemoryRedis, keys: string[], args: string[]): unknown {
  const budget = openBudget(redis, keys, args);
  const { now } = budget;
  const [, , metrics = "", accountKey = "", lock = "", slot = "", next = ""] = keys;
  const [token = "", lease, lockTtl, calls, replace] = args.slice(4);
  count(redis, metrics, args, 9);
  const held = redis.get(lock);
  if (held !== null && replace !== "1") {
    const [owner, until] = held.split(":");
    if (owner !== token && Number(until) > now) return ["held"];
  }
  const defer = (at: number, reason: string, reserved: boolean, blocked: number) => {
    add(redis.hash(metrics), `jobs_deferred:${reason}`, 1);
    if (replace !== "1") add(redis.hash(metrics), "runs:deferred", 1);
    return ["defer", budget.wait(at), reason, reserved ? "1" : "0", budget.wait(blocked)];
  };
  const account = Number(redis.get(accountKey) ?? 0);
  const blocked = Math.max(budget.cooldown, account);
  const putOff = (notBefore: number, reason: string) => {
    const nextSlot = budget.find(next);
    if (redis.get(next) !== null && !(nextSlot !== null && nextSlot.at >= now - budget.late)) {
      return defer(Math.max(now, blocked, budget.hold), reason, false, blocked);
    }
    const { at, reserved } = budget.reserve(next, Number(calls), notBefore);
    return defer(at, reason, reserved, blocked);
  };
  if (Math.max(blocked, budget.hold) > now) return putOff(account, blocked > now ? "cooldown" : "hold");
  const found = budget.find(slot);
  if (found !== null && found.at > now) {
    redis.delete(slot);
    redis.set(next, found.value, found.at - now + 3_600_000);
    return defer(found.at, "early", false, now);
  }
  let go = { at: found?.at ?? 0, calls: found?.calls ?? 0, reserved: false };
  if (found === null || found.at < now - budget.late) {
    if (budget.nextFree(Number(calls), true).base <= now) {
      go = budget.reserve(slot, Number(calls), 0);
    } else if (found === null || budget.pace() > now) {
      return putOff(0, "budget");
    }
  }
  const after = Number(redis.get(slot)?.split(":").at(-1));
  budget.spend(go.calls, after === 0 && go.at >= now - budget.late);
  redis.set(lock, `${token}:${(now + Number(lease)).toFixed(0)}`, seconds(lockTtl));
  return ["go", String(go.calls), String(budget.limit), go.reserved ? "1" : "0", go.at.toFixed(0)];
}

function observe(redis: MemoryRedis, keys: string[], args: string[]): unknown {
  const budget = openBudget(redis, keys, args);
  const { now, stored } = budget;
  const [limit = "", hold, cooldown, account] = args.slice(4);
  let rose = 0;
  if (limit !== "" && limit !== stored.get("seen")) {
    stored.set("seen", limit);
    const fresh = (budget.window / (Math.min(Number(args[1]), Number(limit)) * budget.share)).toFixed(3);
    if (fresh !== budget.rate) {
      rose = Number(fresh) < Number(budget.rate) ? 1 : 0;
      stored
        .set("rate", fresh)
        .set("gen", String(budget.gen + 1))
        .set("tat", budget.pace().toFixed(3));
      stored.delete("ahead");
      stored.delete("spares");
    }
  }
  if (Number(hold) > 0 && now + Number(hold) > budget.hold) stored.set("hold", (now + Number(hold)).toFixed(3));
  const cool = (key: string, length: number) => {
    if (length > 0 && now + length > Number(redis.get(key) ?? 0)) redis.set(key, (now + length).toFixed(0), length);
  };
  cool(keys[1] ?? "", Number(cooldown));
  cool(keys[3] ?? "", Number(account));
  count(redis, keys[2] ?? "", args, 8);
  return rose;
}
