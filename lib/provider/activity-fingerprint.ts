import { createHash } from "node:crypto";
import { canonicalDecimal } from "@/lib/provider/decimal-text";
import type { Activity, NumberText } from "@/lib/provider/provider";

/**
 * SHA-256 (hex) over what makes a transaction, without its id, which SnapTrade may re-issue (API reference,
 * getAccountActivities), and without an occurrence, which only the whole set of stored rows can tell. Numbers count by
 * value (1.0 = 1.00) and times by instant, so that another spelling of the same trade keeps its fingerprint.
 * The order of the list is part of stored data: change it and every re-issued id doubles its row once.
 */
export function activityFingerprint(activity: Omit<Activity, "activityId" | "fingerprint" | "raw">): string {
  const attributes = [
    activity.type,
    activity.symbol,
    activity.optionSymbol,
    activity.optionType,
    activity.tradeDate,
    activity.settlementDate,
    activity.currency,
    byValue(activity.price),
    byValue(activity.units),
    byValue(activity.amount),
    byValue(activity.fee),
    byValue(activity.fxRate),
    activity.description,
    activity.institution,
    activity.externalReferenceId,
  ];
  return createHash("sha256").update(JSON.stringify(attributes)).digest("hex");
}

function byValue(number: NumberText): string | null {
  return number === null ? null : canonicalDecimal(number);
}
