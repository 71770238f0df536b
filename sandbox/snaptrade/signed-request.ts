import { createHmac } from "node:crypto";
import type { ApiCall } from "@/sandbox/snaptrade/api-call";
import type { SimUser } from "@/sandbox/snaptrade/world";

export type ApiKey = { clientId: string; consumerKey: string };
export type SignatureVerdict = "genuine" | "bad-signature" | "unknown-user";

/**
 * The check of a signed request (SDK 11.0.3 requestAfterHook): `Signature` is the base64 HMAC-SHA256 of
 * `{"content","path","query"}` under `encodeURI(consumerKey)`, path and query as sent. The docs sign `/api/v1` with the
 * path, the SDK signs without it, so a call under that prefix may do either. No endpoint here takes a body, so `content`
 * is null. The timestamp must be there; its age is not looked at, because the simulator may run on a stepped clock.
 */
export function checkSignedRequest(call: ApiCall, key: ApiKey, users: ReadonlyMap<string, SimUser>): SignatureVerdict {
  const { query } = call;
  const bodyless = call.body === "" || call.body === "{}";
  const signable = bodyless && query.get("clientId") === key.clientId && /^\d+$/.test(query.get("timestamp") ?? "");
  const expected = [call.path, call.sentPath].map((path) => signatureOf(path, call.rawQuery, key.consumerKey));
  if (!signable || call.signature === undefined || !expected.includes(call.signature)) return "bad-signature";
  const user = users.get(query.get("userId") ?? "");
  return user !== undefined && user.userSecret === query.get("userSecret") ? "genuine" : "unknown-user";
}

function signatureOf(path: string, query: string, consumerKey: string): string {
  const signed = JSON.stringify({ content: null, path, query });
  return createHmac("sha256", encodeURI(consumerKey)).update(signed).digest("base64");
}
