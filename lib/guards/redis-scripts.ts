import { Redis, type Requester, type UpstashRequest } from "@upstash/redis";
import { z } from "zod";
import { postJson } from "@/lib/http/post-json";
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

const upstashReply = z.union([z.object({ result: z.unknown() }), z.object({ error: z.string() })]);

/**
 * Scripts over Upstash's REST client with a requester of our own (the client's documented seam), because its default one
 * would break what we stand on: it re-sends (a re-sent script runs twice, and a lost reply of NX reads as somebody else's
 * claim), pipelines by itself (no order between calls) and has no time limit. Here a command is one request, once, within
 * `timeoutMs`. The client decodes a text that is a number; `String` of it is that text again (measured with 1.39.0).
 */
export function createScriptRunner(options: RedisOptions): ScriptRunner {
  const headers = { authorization: `Bearer ${options.token}`, "content-type": "application/json" };
  const requester: Requester = {
    async request<T>({ path, body }: UpstashRequest) {
      const url = [options.url.replace(/\/$/, ""), ...(path ?? [])].join("/");
      const reply = await postJson(url, headers, JSON.stringify(body), options.timeoutMs);
      const parsed = upstashReply.parse(JSON.parse(reply.text));
      if ("error" in parsed) throw new Error(parsed.error);
      return { result: parsed.result as T };
    },
  };
  const redis = new Redis(requester);
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
