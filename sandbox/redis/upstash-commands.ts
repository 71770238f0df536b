import { createHash } from "node:crypto";
import type { CommandWords } from "@/sandbox/redis/redis-backend";

/** Commands that need a connection of one's own, or reach beyond the one database that a client sees at Upstash. */
const UNAVAILABLE = new Set(
  `BLPOP BRPOP BLMOVE BLMPOP BRPOPLPUSH BZPOPMIN BZPOPMAX BZMPOP SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE
  SUNSUBSCRIBE MONITOR WAIT WAITAOF MULTI EXEC DISCARD WATCH UNWATCH SELECT SWAPDB MOVE AUTH HELLO QUIT RESET CLIENT
  CONFIG DEBUG SHUTDOWN REPLICAOF SLAVEOF SYNC PSYNC FAILOVER CLUSTER MIGRATE SAVE BGSAVE BGREWRITEAOF MODULE ACL`.split(
    /\s+/,
  ),
);

/** Commands that Redis refuses when memory is out. Scripts among them: ours write. */
const NEEDS_MEMORY = new Set(
  `SET SETEX SETNX PSETEX SETRANGE GETSET MSET MSETNX APPEND INCR INCRBY INCRBYFLOAT DECR DECRBY HSET HMSET HSETNX HINCRBY
  HINCRBYFLOAT LPUSH RPUSH LPUSHX RPUSHX LINSERT LSET SADD ZADD ZINCRBY XADD PFADD BITFIELD SETBIT COPY EVAL EVALSHA`.split(
    /\s+/,
  ),
);

/** The error that this command gets without being run, or undefined. */
export function refusal([word, ...args]: CommandWords, outOfMemory: boolean): string | undefined {
  const name = word.toUpperCase();
  const blocks = /^XREAD(GROUP)?$/.test(name) && args.some((arg) => arg.toUpperCase() === "BLOCK");
  if (UNAVAILABLE.has(name) || blocks) {
    return `ERR Command is not available: '${name}'. See https://upstash.com/docs/redis/overall/rediscompatibility for details`;
  }
  if (outOfMemory && NEEDS_MEMORY.has(name)) return "OOM command not allowed when used memory > 'maxmemory'.";
  return undefined;
}

const KEY_LOCKING = /^#!lua flags=([^\n]*)\n/;

/**
 * Turns what only Upstash knows into what Redis knows: a script's flag `allow-key-locking` is taken away, and the
 * digest of the original then stands for the changed one; FLUSHALL empties the one database that there is.
 */
export function createCommandTranslator(): (command: CommandWords) => CommandWords {
  const digests = new Map<string, string>();

  const withoutKeyLocking = (script: string): string => {
    const flags = KEY_LOCKING.exec(script)?.[1]?.split(",");
    if (!flags?.includes("allow-key-locking")) return script;
    const rest = flags.filter((flag) => flag !== "allow-key-locking");
    const body = script.slice(script.indexOf("\n") + 1);
    const changed = rest.length === 0 ? `\n${body}` : `#!lua flags=${rest.join(",")}\n${body}`;
    digests.set(sha1(script), sha1(changed));
    return changed;
  };

  return ([word, ...args]) => {
    const [first, second, ...others] = args;
    switch (word.toUpperCase()) {
      case "FLUSHALL":
        return ["FLUSHDB", ...args];
      case "EVAL":
      case "EVAL_RO":
        return first === undefined ? [word] : [word, withoutKeyLocking(first), ...args.slice(1)];
      case "EVALSHA":
      case "EVALSHA_RO":
        return first === undefined ? [word] : [word, digests.get(first.toLowerCase()) ?? first, ...args.slice(1)];
      case "SCRIPT":
        return first?.toUpperCase() === "LOAD" && second !== undefined
          ? [word, first, withoutKeyLocking(second), ...others]
          : [word, ...args];
      default:
        return [word, ...args];
    }
  };
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
