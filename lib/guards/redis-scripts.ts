import { Redis } from "@upstash/redis";
import type { Logger } from "@/lib/log";

/** Redis gave no positive answer in time: the caller goes the way that needs none. Never an exception, never a guess. */
export type Away = { kind: "away" };

export interface ScriptRunner {
  /** The reply of the script, or Away. One round trip (two the first time a Redis sees a script). */
  run(script: string, keys: string[], args: (string | number)[]): Promise<unknown | Away>;
}

export const AWAY: Away = { kind: "away" };

export function isAway(reply: unknown): reply is Away {
  return reply === AWAY;
}

export type RedisOptions = { url: string; token: string; timeoutMs: number; logger: Logger };

/**
 * Scripts over Upstash's REST client, with what its defaults would break switched off:
 * no re-sending (a re-sent script would run twice, and a lost reply of NX would read as somebody else's claim), no
 * auto-pipelining (no order between calls), no decoding (an id of digits would come back as a number). The time limit is
 * a function that makes a new signal: with a fixed one an aborted call answers null (measured with 1.39.0).
 */
export function createScriptRunner(options: RedisOptions): ScriptRunner {
  const redis = new Redis({
    url: options.url,
    token: options.token,
    retry: { retries: 0 },
    enableAutoPipelining: false,
    enableTelemetry: false,
    automaticDeserialization: false,
    readYourWrites: false,
    signal: () => AbortSignal.timeout(options.timeoutMs),
  });
  const scripts = new Map<string, ReturnType<typeof redis.createScript<unknown>>>();
  return {
    async run(script, keys, args) {
      let known = scripts.get(script);
      if (known === undefined) {
        known = redis.createScript<unknown>(script);
        scripts.set(script, known);
      }
      try {
        const reply = await known.exec(keys, args.map(String));
        // An aborted call must never pass for a reply: no script of ours answers null.
        if (reply === null || reply === undefined) throw new Error("Redis answered nothing");
        return reply;
      } catch (error) {
        // The client's message repeats the whole command; its first words tell what happened.
        const reason =
          error instanceof Error ? `${error.name}: ${error.message.split(", command was:")[0]}` : "unknown";
        options.logger.warn({ reason }, "Redis gave no answer; going on without it");
        return AWAY;
      }
    },
  };
}
