import { PostgrestClient } from "@supabase/postgrest-js";
import { z } from "zod";
import { createJsonFetch } from "@/lib/http/post-json";

/**
 * A SQL function did not answer. `away`: it cannot be told whether it ran, or it did not run for want of a database; the
 * caller gives up what it holds and lets a lease, a retry or a cron bring it back.
 */
export class StoreError extends Error {
  override readonly name = "StoreError";
  constructor(
    readonly functionName: string,
    readonly code: string,
    detail: string,
    readonly away: boolean,
  ) {
    super(`${functionName} failed (${code || "no code"}): ${detail}`);
  }
}

/** PostgREST's own faults have Postgres's code or its own; what stands before it may answer any JSON. */
const faultCode = z.string().regex(/^([0-9A-Z]{5}|PGRST\w{3})$/);
const fault = z
  .object({ code: faultCode.catch(""), message: z.string().catch("") })
  .catch({ code: "", message: "no JSON of PostgREST" });

export type CallFunction = <T>(name: string, request: object, answer: z.ZodType<T>) => Promise<T>;

/**
 * Calls one SQL function with its one `jsonb` argument, through PostgREST, once: no call is re-sent, for a call whose
 * answer was lost may have run. Time limit `timeoutMs`. The client is the part of supabase-js that calls functions: the
 * whole of it asks for a user's session before each call, which a service has not (measured: a fifth of a call).
 * @throws StoreError
 */
export function createFunctionCaller(options: { url: string; secretKey: string; timeoutMs: number }): CallFunction {
  const { url, secretKey, timeoutMs } = options;
  const client = new PostgrestClient(`${url.replace(/\/$/, "")}/rest/v1`, {
    headers: { apikey: secretKey, authorization: `Bearer ${secretKey}` },
    schema: "public",
    fetch: createJsonFetch(timeoutMs),
  });
  return async (name, request, answer) => {
    const { data, error, status } = await client.rpc(name, { request }).retry(false);
    if (error !== null || status >= 400) {
      const { code, message } = fault.parse(error);
      throw new StoreError(name, code, message.slice(0, 500), isAway(code));
    }
    const parsed = answer.safeParse(data);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      throw new StoreError(name, "answer", `${issue?.path.join(".")}: ${issue?.message}`, false);
    }
    return parsed.data;
  };
}

/**
 * No code: no answer came. 08 connection, 53 resources, 57 cancelled or shutting down, 40 rolled back, 55P03 lock;
 * PGRST00x: PostgREST has no database.
 */
function isAway(code: string): boolean {
  return code === "" || /^(08|53|57|40|55P03|PGRST00)/.test(code);
}
