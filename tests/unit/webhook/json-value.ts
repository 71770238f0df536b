import { type JsonObject, parseWebhookJson } from "@/lib/webhook/json-text";

/** The value of a JSON text that the test itself wrote; a text that does not parse is the test's own mistake. */
export function jsonValue(text: string): JsonObject {
  const read = parseWebhookJson(new TextEncoder().encode(text));
  if (read.kind !== "ok") throw new Error(`${read.reason}: ${text}`);
  return read.value;
}
