import { AsyncLocalStorage } from "node:async_hooks";
import { unmarkNumbers } from "@/sandbox/supabase/exact-numbers";
import { quoteNumericFilters } from "@/sandbox/supabase/filter-url";
import { createLite, type LiteOptions } from "@/sandbox/supabase/lite-app";
import { type DatabaseError, isDatabaseError, postgrestError } from "@/sandbox/supabase/postgrest-errors";

export type LiteHandler = { answer(request: Request): Promise<Response>; close(): Promise<void> };

/** lite with its request and answer put right: text filters, SQLSTATEs that it answers as 500 `SUP`, exact numbers. */
export async function createLiteHandler(options: LiteOptions): Promise<LiteHandler> {
  const { app, connection } = await createLite(options);
  const requests = new AsyncLocalStorage<{ error?: DatabaseError }>();
  const normalize = connection.normalizeDbError.bind(connection);
  connection.normalizeDbError = (error) => {
    const request = requests.getStore();
    if (request !== undefined && isDatabaseError(error)) request.error = error;
    return normalize(error);
  };

  return {
    async answer(request) {
      const seen: { error?: DatabaseError } = {};
      const url = quoteNumericFilters(request.url);
      const response = await requests.run(seen, async () =>
        app.fetch(url === request.url ? request : new Request(url, request)),
      );
      if (response.status === 500 && seen.error !== undefined) {
        return postgrestError(seen.error, request.headers.has("authorization"));
      }
      const isJson = response.headers.get("content-type")?.includes("json");
      if (!isJson || response.body === null) return response;
      const headers = new Headers(response.headers);
      headers.delete("content-length");
      return new Response(unmarkNumbers(await response.text()), { status: response.status, headers });
    },
    close: () => connection.close(),
  };
}
