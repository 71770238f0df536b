import { processService } from "@/lib/composition";
import { answer } from "@/lib/http/answer";
import type { Service } from "@/lib/service";

/**
 * A route handler over the process's service. Where the environment is at fault every route answers 503 and the log of the
 * start names the variable. An exception is a fault of ours: logged, and answered 500 without its text.
 */
export function route(handle: (service: Service, request: Request) => Promise<Response>) {
  return async (request: Request): Promise<Response> => {
    const composed = processService();
    if (composed.kind === "bad")
      return answer(503, { error: "The service is not configured; its log names the variable." });
    try {
      return await handle(composed.service, request);
    } catch (error) {
      composed.service.logger.error({ error, path: new URL(request.url).pathname }, "Unexpected fault");
      return answer(500, { error: "unexpected" });
    }
  };
}
