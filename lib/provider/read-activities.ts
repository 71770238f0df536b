import { isLosslessNumber } from "lossless-json";
import { z } from "zod";
import { activityFingerprint } from "@/lib/provider/activity-fingerprint";
import type { Activity, ActivityPage } from "@/lib/provider/provider";
import {
  type Read,
  readList,
  readShape,
  wireCurrency,
  wireNumber,
  wireObject,
  wireText,
  wireTime,
} from "@/lib/provider/wire-values";

const count = z
  .unknown()
  .refine((value) => isLosslessNumber(value) && /^\d{1,9}$/.test(value.value), "expected a whole number")
  .transform(String)
  .transform(Number);

const answer = wireObject({
  data: z.array(z.unknown()),
  pagination: wireObject({ offset: count.optional(), total: count }),
});

const activity = wireObject({
  id: wireText,
  symbol: z.union([wireText, wireObject({ symbol: wireText }).transform(({ symbol }) => symbol)]).optional(),
  option_symbol: wireObject({ ticker: wireText }).nullish(),
  option_type: wireText,
  type: wireText,
  description: wireText,
  currency: wireCurrency,
  price: wireNumber,
  units: wireNumber,
  amount: wireNumber,
  fee: wireNumber,
  fx_rate: wireNumber,
  trade_date: wireTime,
  settlement_date: wireTime,
  institution: wireText,
  external_reference_id: wireText,
}).refine(({ id, type }) => id !== null || type !== null, "neither id nor type");

/**
 * `GET /accounts/{id}/activities`: one page, newest trade first. `total` decides when the reading is complete, so a
 * page without it, of another offset than asked, or empty before `total` is reached, is not an answer.
 */
export function readActivities(json: unknown, offset: number): Read<ActivityPage> {
  const shape = readShape("activities", answer, json);
  if (!shape.ok) return shape;
  const { data, pagination } = shape.value;
  if (pagination.offset !== undefined && pagination.offset !== offset) {
    return { ok: false, reason: `activities.pagination.offset: asked for ${offset}, got ${pagination.offset}` };
  }
  if (data.length === 0 && offset < pagination.total) {
    return { ok: false, reason: `activities.data: empty at offset ${offset} of ${pagination.total}` };
  }
  const activities = readList("activities.data", data, activity, toActivity);
  if (!activities.ok) return activities;
  return { ok: true, value: { activities: activities.value, offset, total: pagination.total } };
}

function toActivity(wire: z.output<typeof activity>, raw: string): Activity {
  const attributes = {
    type: wire.type,
    symbol: wire.symbol ?? null,
    optionSymbol: wire.option_symbol?.ticker ?? null,
    optionType: wire.option_type,
    description: wire.description,
    currency: wire.currency,
    price: wire.price,
    units: wire.units,
    amount: wire.amount,
    fee: wire.fee,
    fxRate: wire.fx_rate,
    tradeDate: wire.trade_date,
    settlementDate: wire.settlement_date,
    institution: wire.institution,
    externalReferenceId: wire.external_reference_id,
  };
  return { activityId: wire.id, fingerprint: activityFingerprint(attributes), ...attributes, raw };
}
