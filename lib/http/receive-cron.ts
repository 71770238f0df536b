import { readHealth } from "@/lib/health/read-health";
import { answer, answerText } from "@/lib/http/answer";
import { isCronRequest } from "@/lib/http/cron-auth";
import { verifyQStash } from "@/lib/http/qstash-auth";
import { SWEEP_PATH } from "@/lib/jobs/publisher";
import { reconcile } from "@/lib/jobs/reconcile";
import { startSweep, sweepMessage, sweepPage } from "@/lib/jobs/sweep-stale";
import { notRetryable } from "@/lib/jobs/worker-answer";
import { readMetrics } from "@/lib/metrics/read-metrics";
import type { Service } from "@/lib/service";
import { StoreError } from "@/lib/store/call-function";

const unauthorized = () => answer(401, { error: "unauthorized" });

/** Vercel's cron, every 15 minutes: starts a sweep unless one is under way. */
export async function receiveSweepStart(service: Service, request: Request): Promise<Response> {
  if (!isCronRequest(request, service.env.cronSecret)) return unauthorized();
  return guarded(service, "Sweep", async () => ({ sweep: await startSweep(service) }));
}

/** QStash: one page of a sweep. */
export async function receiveSweepPage(service: Service, request: Request): Promise<Response> {
  const { qstash, appUrl } = service.env;
  const check = await verifyQStash(request, { ...qstash, url: `${appUrl}${SWEEP_PATH}` });
  if (check.kind === "unauthorized") return unauthorized();
  const message = sweepMessage.safeParse(safeJson(check.text));
  if (!message.success) return notRetryable("not a page of a sweep");
  return guarded(service, "Sweep page", () => sweepPage(service, message.data));
}

/** Vercel's cron, each minute. */
export async function receiveReconcile(service: Service, request: Request): Promise<Response> {
  if (!isCronRequest(request, service.env.cronSecret)) return unauthorized();
  return guarded(service, "Reconcile", () => reconcile(service));
}

/** The uptime monitor: 200 without I/O; with the bearer everything, 503 while something is at fault. */
export async function receiveHealth(service: Service, request: Request): Promise<Response> {
  if (!isCronRequest(request, service.env.cronSecret)) return answer(200, { status: "up" });
  const { health, isFault } = await readHealth(service);
  return answer(isFault ? 503 : 200, health);
}

/** Prometheus, with the bearer. */
export async function receiveMetrics(service: Service, request: Request): Promise<Response> {
  if (!isCronRequest(request, service.env.cronSecret)) return unauthorized();
  return answerText(200, await readMetrics(service), "text/plain; version=0.0.4; charset=utf-8");
}

async function guarded(service: Service, name: string, work: () => Promise<object>): Promise<Response> {
  try {
    const done = await work();
    service.logger.info({ ...done }, name);
    return answer(200, done);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    service.logger.error({ error }, `${name} could not be done; the next call does it`);
    return answer(503, { error: "Postgres did not do it" });
  }
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
