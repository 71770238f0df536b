import { AsyncLocalStorage } from "node:async_hooks";
import { inspect } from "node:util";
import type { HttpCall, HttpReply } from "@/sandbox/listen";
import { unmarkNumbers } from "@/sandbox/supabase/exact-numbers";
import { quoteNumericFilters } from "@/sandbox/supabase/filter-url";
import { createLite, type LiteOptions } from "@/sandbox/supabase/lite-app";
import { type DatabaseError, isDatabaseError, postgrestError } from "@/sandbox/supabase/postgrest-errors";

export type LiteHandler = { answer(call: HttpCall): Promise<HttpReply>; close(): Promise<void> };

/** lite with its request and answer put right: text filters, SQLSTATEs that it answers as 500 `SUP`, exact numbers. */
export async function createLiteHandler(options: LiteOptions): Promise<LiteHandler> {
  const { app, connection } = await createLite(options);
  const requests = new AsyncLocalStorage<{ error?: DatabaseError }>();
  const normalize = connection.normalizeDbError.bind(connection);
  connection.normalizeDbError = (error) => {
    const request = requests.getStore();
    if (request !== undefined && isDatabaseError(error)) {
      request.error = error;
      const line = `${error.code} ${error.message}`; // lite prints each error of Postgres, stack and all
      Object.defineProperty(error, inspect.custom, { value: () => line });
    }
    return normalize(error);
  };

  return {
    async answer(call) {
      const seen: { error?: DatabaseError } = {};
      const response = await requests.run(seen, async () => app.fetch(toRequest(call)));
      if (response.status === 500 && seen.error !== undefined) {
        return postgrestError(seen.error, call.headers.authorization !== undefined);
      }
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.includes("json");
      return {
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body: isJson ? unmarkNumbers(text) : text,
      };
    },
    close: () => connection.close(),
  };
}

function toRequest({ method, target, headers, body }: HttpCall): Request {
  const given = Object.entries(headers).flatMap(([name, value]) => (typeof value === "string" ? [[name, value]] : []));
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(quoteNumericFilters(`http://127.0.0.1${target}`), {
    method,
    headers: Object.fromEntries(given),
    ...(hasBody ? { body: new Uint8Array(body) } : {}),
  });
}
