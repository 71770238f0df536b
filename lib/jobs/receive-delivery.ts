import { z } from "zod";
import { type JobMessage, WORK_TYPES, type WorkType } from "@/lib/domain";
import { answer } from "@/lib/http/answer";
import { verifyQStash } from "@/lib/http/qstash-auth";
import { workerPath } from "@/lib/jobs/publisher";
import { runJob } from "@/lib/jobs/run-job";
import { notRetryable, workerAnswer } from "@/lib/jobs/worker-answer";
import type { Service } from "@/lib/service";
import { StoreError } from "@/lib/store/call-function";
import { isId } from "@/lib/webhook/event-ids";

/** The largest that Postgres holds in an `integer`: a greater one was never handed out. */
const MAX_DELIVERY = 2 ** 31 - 1;

const message = z.object({
  jobId: z.uuid(),
  workType: z.enum(WORK_TYPES),
  accountId: z.string().refine(isId),
  delivery: z.number().int().positive().max(MAX_DELIVERY),
});

/** The JSON of a QStash message, or null. */
export function parseMessage(text: string): JobMessage | null {
  try {
    return message.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** A job message from QStash: verified for this very route (I9), parsed, run, answered. */
export async function receiveDelivery(service: Service, workType: WorkType, request: Request): Promise<Response> {
  const { qstash, appUrl } = service.env;
  const check = await verifyQStash(request, { ...qstash, url: `${appUrl}${workerPath(workType)}` });
  if (check.kind === "unauthorized") {
    service.logger.warn({ reason: check.reason }, "Delivery refused");
    return answer(401, { error: "unauthorized" });
  }
  const job = parseMessage(check.text);
  if (job === null || job.workType !== workType) {
    service.logger.error({ bytes: check.text.length }, "A delivery is no job message of this route");
    return notRetryable("not a job message of this route");
  }
  const retried = Number(request.headers.get("upstash-retried") ?? "0");
  try {
    const outcome = await runJob(service, {
      job,
      retried: Number.isSafeInteger(retried) && retried > 0 ? retried : 0,
      messageId: request.headers.get("upstash-message-id")?.slice(0, 200) ?? null,
    });
    return workerAnswer(outcome);
  } catch (error) {
    service.logger.error({ ...job, error }, "Delivery failed");
    return workerAnswer(error instanceof StoreError && error.away ? "postgres_away" : "unexpected");
  }
}
