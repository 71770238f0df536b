import { z } from "zod";
import { isAway } from "@/lib/guards/redis-scripts";
import { answer } from "@/lib/http/answer";
import { verifyQStash } from "@/lib/http/qstash-auth";
import { reportDead } from "@/lib/jobs/end-run";
import { publishWithSlots } from "@/lib/jobs/publish-jobs";
import { FAILURE_PATH } from "@/lib/jobs/publisher";
import { parseMessage } from "@/lib/jobs/receive-delivery";
import type { Service } from "@/lib/service";
import { StoreError } from "@/lib/store/call-function";
import { RETRY_AFTER_S } from "@/lib/timings";

/** QStash docs, features/callbacks: bodies are base64. Only what we use. */
const callback = z.object({ sourceBody: z.string(), status: z.number().optional(), dlqId: z.string().optional() });

/**
 * QStash gave a message up. It acts only if its job is still queued under that very delivery number: then the next
 * delivery a minute later, with a slot, and never an attempt. While Redis is away the job is left to reconcile. A body
 * that is no job of ours is answered 200 with one alert: no retry could change it.
 */
export async function receiveFailedMessage(service: Service, request: Request): Promise<Response> {
  const { qstash, appUrl, limits } = service.env;
  const check = await verifyQStash(request, { ...qstash, url: `${appUrl}${FAILURE_PATH}` });
  if (check.kind === "unauthorized") {
    service.logger.warn({ reason: check.reason }, "Failure callback refused");
    return answer(401, { error: "unauthorized" });
  }
  const failed = parseCallback(check.text);
  const job = failed === null ? null : parseMessage(Buffer.from(failed.sourceBody, "base64").toString("utf8"));
  if (failed === null || job === null) {
    service.logger.error({ alert: "unknown_dead_letter" }, "QStash gave up a message that is no job of ours");
    return answer(200, { outcome: "unknown" });
  }
  try {
    const known = await service.guards.findSlots([job]);
    if (isAway(known)) return answer(200, { outcome: "left_to_reconcile" });
    const again = await service.store.republishFailed({ ...job, maxAttempts: limits.jobMaxAttempts });
    await service.reach("callback:handed-out");
    service.logger.warn(
      { ...job, status: failed.status, dlqId: failed.dlqId, outcome: again.outcome },
      "QStash gave up a delivery",
    );
    if (again.outcome === "dead") {
      reportDead(service, job, "QStash gave up its last delivery");
    }
    await publishWithSlots(service, again.outcome === "overtaken" || again.publish === null ? [] : [again.publish]);
    return answer(200, { outcome: again.outcome });
  } catch (error) {
    service.logger.error({ ...job, error }, "Failure callback failed");
    const status = error instanceof StoreError && error.away ? 503 : 500;
    return answer(status, { error: "try again" }, { "Retry-After": String(RETRY_AFTER_S) });
  }
}

function parseCallback(text: string): z.infer<typeof callback> | null {
  try {
    return callback.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
