import type { HeaderRecord } from "@/sandbox/qstash/message";

const CONFIGURATION = /^(?:upstash-|qstash_token(?:=|$))/i;

/**
 * Splits what follows `/v2/publish/` into the destination and the configuration that may stand in its query string (QStash docs,
 * howto/webhook: `?upstash-retries=3&qstash_token=...`). The rest of the destination stays byte for byte; a fragment is dropped.
 */
export function splitDestination(raw: string): { destination: string; configuration: HeaderRecord } {
  const [whole = ""] = raw.split("#", 1);
  const mark = whole.indexOf("?");
  if (mark < 0) return { destination: whole, configuration: {} };
  const parts = whole.slice(mark + 1).split("&");
  const kept = parts.filter((part) => !CONFIGURATION.test(part));
  const configuration: HeaderRecord = {};
  for (const part of parts.filter((own) => /^upstash-/i.test(own))) {
    for (const [name, value] of new URLSearchParams(part)) configuration[name.toLowerCase()] = value;
  }
  const emptied = kept.length === 0 && parts.length > 0;
  return { destination: whole.slice(0, mark) + (emptied ? "" : `?${kept.join("&")}`), configuration };
}
