import { createHmac, timingSafeEqual } from "node:crypto";
import { isSameSecret } from "@/lib/same-secret";
import { canonicalText } from "@/lib/webhook/canonical-text";
import type { JsonObject } from "@/lib/webhook/json-text";

/** Base64 of the 32 bytes of an HMAC-SHA256, the only form of the header (SnapTrade docs, webhooks). */
const SIGNATURE = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Whether SnapTrade sent this body. `signature` is the `Signature` header, null where none came; `bytes` the body as it
 * came and `value` the same body parsed. Genuine is an HMAC with any of the consumer keys over the canonical text or
 * over the raw bytes: SnapTrade documents the former in its sample and the latter in its prose. Without the header, and
 * only then, the deprecated `webhookSecret` of the body counts, where one is configured. Constant time; never throws.
 */
export function verifyWebhook(input: {
  signature: string | null;
  bytes: Uint8Array;
  value: JsonObject;
  consumerKeys: readonly string[];
  webhookSecret?: string | undefined;
}): boolean {
  const { signature, bytes, value, consumerKeys, webhookSecret } = input;
  if (signature === null) {
    const given = value.get("webhookSecret");
    return Boolean(webhookSecret) && typeof given === "string" && isSameSecret(given, webhookSecret ?? "");
  }
  if (!SIGNATURE.test(signature)) return false;

  const given = Buffer.from(signature, "latin1");
  const canonical = canonicalText(value);
  let genuine = false;
  for (const key of consumerKeys) {
    for (const signed of [canonical, bytes]) {
      const expected = Buffer.from(createHmac("sha256", key).update(signed).digest("base64"), "latin1");
      // Every pair is compared: the time must not tell which key or which form was the right one.
      genuine = timingSafeEqual(given, expected) || genuine;
    }
  }
  return genuine;
}
