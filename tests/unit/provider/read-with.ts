import { parseProviderJson } from "@/lib/provider/json-text";
import type { Read } from "@/lib/provider/wire-values";

/** Reads JSON text and gives the value; a test that expected one fails with the reason. */
export function readWith<T>(read: (json: unknown) => Read<T>, text: string): T {
  const result = tryRead(read, text);
  if (!result.ok) throw new Error(result.reason);
  return result.value;
}

export function tryRead<T>(read: (json: unknown) => Read<T>, text: string): Read<T> {
  const parsed = parseProviderJson(text);
  return parsed.ok ? read(parsed.json) : parsed;
}

/** The text with one thing replaced; a replacement that finds nothing is a mistake in the test. */
export function edit(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`${from} is not in ${text}`);
  return text.replace(from, to);
}
