import { type EventOutcome, type SyncKey, WORK_TYPES } from "@/lib/domain";
import { AWAY, isAway } from "@/lib/guards/redis-scripts";
import { answer } from "@/lib/http/answer";
import { publishJobs } from "@/lib/jobs/publish-jobs";
import { field } from "@/lib/metrics/metric-names";
import type { Service } from "@/lib/service";
import type { AcceptEventAnswer } from "@/lib/store/answers";
import { StoreError } from "@/lib/store/call-function";
import type { EventRow } from "@/lib/store/store";
import { RETRY_AFTER_S } from "@/lib/timings";
import { effectOf } from "@/lib/webhook/event-effects";
import { parseWebhookJson } from "@/lib/webhook/json-text";
import { parseEvent, type WebhookEvent } from "@/lib/webhook/parse-event";
import { readBody } from "@/lib/webhook/read-body";
import { verifyWebhook } from "@/lib/webhook/verify-signature";

/** Runs after the answer was sent; the platform keeps the function alive for it. */
export type AfterResponse = (task: () => Promise<void>) => void;

/** A job that is due later than this does not stand behind the queued key: an event may have to pull it forward. */
const SOON_MS = 60_000;

/**
 * Intake: one webhook, made durable and answered (ARCHITECTURE.md, An event). An authentic event gets 200, except
 * when it could not be made durable: then our claims go and SnapTrade's retry is asked for by 503. Before the signature
 * is verified nothing of the body is logged and nothing else is called (I9).
 */
export async function receiveWebhook(service: Service, request: Request, after: AfterResponse): Promise<Response> {
  const { env, logger } = service;
  const body = await readBody(request);
  if (body.kind === "too_large") return refuse(service, 413, "body too large");
  if (body.kind === "cut") return refuse(service, 400, "body cut off");
  const parsed = parseWebhookJson(body.bytes);
  if (parsed.kind === "bad") return refuse(service, 400, parsed.reason);
  const authentic = verifyWebhook({
    signature: request.headers.get("signature"),
    bytes: body.bytes,
    value: parsed.value,
    consumerKeys: env.snaptrade.consumerKeys,
    ...(env.snaptrade.webhookSecret === undefined ? {} : { webhookSecret: env.snaptrade.webhookSecret }),
  });
  if (!authentic) return refuse(service, 401, "no valid signature");

  const read = parseEvent(parsed.value, service.clock(), env.limits.webhookMaxAgeMs);
  if (read.kind === "ignored" || read.kind === "expired") {
    logger.info({ ...read }, LINES[read.kind]);
    after(() => service.guards.count({ [field("webhook_events", read.kind)]: 1 }));
    return reply(read.kind, read.webhookId);
  }
  if (read.kind === "unroutable") logger.warn({ ...about(read.event), reason: read.reason }, LINES.unroutable);
  return take(service, read.event, read.kind === "unroutable", after);
}

async function take(
  service: Service,
  event: WebhookEvent,
  unroutable: boolean,
  after: AfterResponse,
): Promise<Response> {
  const { guards, logger } = service;
  const row = eventRow(event, unroutable);
  const key = singleKey(row);
  const claim = { webhookId: event.webhookId, nonce: service.newId(), key };
  const claimed = await guards.claimWebhook({ ...claim, shortCut: (event.failedParts ?? []).length === 0 });
  await service.reach("intake:claimed");
  if (claimed.kind === "duplicate") {
    logger.info(about(event), LINES.duplicate);
    return reply("duplicate", event.webhookId);
  }
  if (claimed.kind === "coalesced") {
    logger.info({ ...about(event), jobId: claimed.jobId }, LINES.coalesced);
    after(() => verifyCoalesced(service, event, row, claim));
    return reply("coalesced", event.webhookId, claimed.jobId);
  }

  let accepted: AcceptEventAnswer;
  try {
    accepted = await service.store.acceptEvent({ ...row, spacingMs: service.env.limits.minRunSpacingMs });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    logger.error({ ...about(event), error }, "The event could not be made durable; asking for it again");
    if (!isAway(claimed)) await guards.releaseWebhook(claim);
    await service.reach("intake:claims-released");
    return answer(
      503,
      { error: "The event could not be stored. Send it again." },
      { "Retry-After": String(RETRY_AFTER_S) },
    );
  }
  await service.reach("intake:accepted");
  report(service, event, accepted);

  const settled = isAway(claimed)
    ? AWAY
    : await guards.settleWebhook({
        ...claim,
        queuedJobId: accepted.queued !== null && accepted.queued.dueInMs <= SOON_MS ? accepted.queued.jobId : null,
        publish: accepted.publish,
        counts: {
          [field("webhook_events", accepted.outcome)]: 1,
          ...(accepted.outcome === "coalesced" ? { [field("jobs_coalesced")]: 1 } : {}),
        },
      });
  await service.reach("intake:settled");
  await publishJobs(service, accepted.publish, settled);
  await service.reach("intake:published");
  return reply(accepted.outcome, event.webhookId, key === null ? undefined : accepted.jobIds[0]);
}

/**
 * Redis called the event coalesced: its job had not begun to read when Redis said so. Postgres writes the row and has the
 * last word: if that job is no longer queued, the event is accepted in full (a failover may have brought an old key back).
 */
async function verifyCoalesced(
  service: Service,
  event: WebhookEvent,
  row: EventRow,
  claim: { webhookId: string; nonce: string },
): Promise<void> {
  try {
    await service.reach("intake:answered");
    const accepted = await service.store.acceptEvent({ ...row, spacingMs: service.env.limits.minRunSpacingMs });
    await service.reach("intake:verified");
    if (accepted.publish.length === 0) return;
    const settled = await service.guards.settleWebhook({
      ...claim,
      key: null,
      queuedJobId: null,
      publish: accepted.publish,
      counts: {},
    });
    await service.reach("intake:verify-settled");
    await publishJobs(service, accepted.publish, settled);
  } catch (error) {
    service.logger.error({ ...about(event), error }, "The row of a coalesced event could not be written");
  }
}

function eventRow(event: WebhookEvent, unroutable: boolean): EventRow {
  const { webhookId, eventType, accountId, connectionId, userId, eventTimestamp, payload } = event;
  return {
    webhookId,
    eventType,
    accountId,
    connectionId,
    userId,
    eventTimestamp,
    payload,
    failedParts: event.failedParts,
    effect: effectOf(event),
    unroutable,
  };
}

/** The one key of an account event of one work type: only such an event can use the queued key. */
function singleKey(row: EventRow): SyncKey | null {
  if (row.unroutable || row.effect.kind !== "account" || row.accountId === null) return null;
  const [workType, ...more] = WORK_TYPES.filter(
    (type) => row.effect.kind === "account" && row.effect.workTypes.includes(type),
  );
  return workType === undefined || more.length > 0 ? null : { workType, accountId: row.accountId };
}

/** The words that operators search for. */
const LINES: Record<EventOutcome, string> = {
  accepted: "Webhook accepted",
  coalesced: "coalescing webhook onto a queued job",
  duplicate: "Duplicate webhook",
  expired: "Webhook expired",
  ignored: "Webhook ignored",
  unroutable: "Webhook unroutable",
  waiting: "Webhook waiting for its account to be known",
};

function report(service: Service, event: WebhookEvent, accepted: AcceptEventAnswer): void {
  const fields = { ...about(event), jobIds: accepted.jobIds };
  if (accepted.differs) {
    service.logger.warn(fields, "The event's connection or user differs from our rows; the account id alone counts");
  }
  service.logger.info(fields, LINES[accepted.outcome]);
}

function about(event: WebhookEvent) {
  const { webhookId, eventType, accountId, connectionId } = event;
  return { webhookId, eventType, accountId, connectionId };
}

function reply(outcome: EventOutcome, webhookId: string, jobId?: string): Response {
  return answer(200, { outcome, webhookId, ...(jobId === undefined ? {} : { jobId }) });
}

/** Nothing of the body is logged: it is not known whose it is. */
function refuse(service: Service, status: number, reason: string): Response {
  service.logger.warn({ status, reason }, "Webhook refused");
  return answer(status, { error: reason });
}
