import { processService } from "@/lib/composition";
import { answer } from "@/lib/http/answer";
import type { Service } from "@/lib/service";

export type Handler = (service: Service, request: Request) => Promise<Response>;

/**
 * A route handler over the process's service. Where the environment is at fault every route answers 503 and the log of the
 * start names the variable.
 */
export function route(handle: Handler): (request: Request) => Promise<Response> {
  return async (request) => {
    const composed = processService();
    if (composed.kind === "ok") return handled(composed.service, handle, request);
    return answer(503, { error: "The service is not configured; its log names the variable." });
  };
}

/** An exception is a fault of ours: logged, and answered 500 without its text. */
export async function handled(service: Service, handle: Handler, request: Request): Promise<Response> {
  try {
    return await handle(service, request);
  } catch (error) {
    service.logger.error({ error, path: new URL(request.url).pathname }, "Unexpected fault");
    return answer(500, { error: "unexpected" });
  }
}
