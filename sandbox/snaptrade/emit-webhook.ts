import { randomUUID } from "node:crypto";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { microsecondTimeText } from "@/sandbox/snaptrade/time-text";
import { num, readWire, type WireObject } from "@/sandbox/snaptrade/wire";
import type { World } from "@/sandbox/snaptrade/world";

const ANSWER_TIMEOUT_MS = 30_000;

export type Emitted = { status: number; body: unknown; webhookId: string };

/**
 * The fields of a webhook (SnapTrade docs, webhooks): ids of the owner are filled in from the account or connection that
 * is named, and every given field wins. The id is random, not seeded: a second simulator beside the same database must
 * not repeat it.
 */
export function webhookFields(given: WireObject, world: World, clientId: string, nowMs: number): WireObject {
  const account = world.accounts.get(String(given.accountId));
  const connection = world.connections.get(account?.connectionId ?? String(given.brokerageAuthorizationId));
  const details = usualDetails(String(given.eventType));
  return {
    webhookId: randomUUID(),
    clientId,
    eventTimestamp: microsecondTimeText(nowMs),
    ...(connection === undefined ? {} : { userId: connection.userId }),
    webhookSecret: "sandbox-webhook-secret",
    ...(connection === undefined ? {} : { brokerageAuthorizationId: connection.connectionId }),
    ...(connection === undefined ? {} : { brokerageId: connection.brokerage.id }),
    ...(details === null ? {} : { details }),
    ...given,
  };
}

/** Posts a signed webhook and returns the answer. Throws when none came. */
export async function postWebhook(fields: WireObject, url: string, consumerKey: string): Promise<Emitted> {
  const { body, signature } = makeWebhook(fields, consumerKey);
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Signature: signature },
    body,
    redirect: "manual",
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  return { status: response.status, body: jsonOrText(await response.text()), webhookId: String(fields.webhookId) };
}

/** A detection lag that happens to be whole is `5.0` on the wire: what a signature check must not turn into 5. */
function usualDetails(eventType: string): WireObject | null {
  const good = { success: true, error: null };
  switch (eventType) {
    case "ACCOUNT_HOLDINGS_UPDATED":
      return { total_value: good, positions: good, balances: good, orders: good };
    case "TRADE_DETECTION":
      return { orders: [], detection_lag_seconds: num("5.0") };
    case "TRADE_UPDATE":
      return { orders: [] };
    default:
      return null;
  }
}

function jsonOrText(text: string): unknown {
  try {
    return readWire(text);
  } catch {
    return text;
  }
}
