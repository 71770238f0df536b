/**
 * SnapTrade's error bodies. They are not uniform, on purpose: `{detail,status_code,code}`, `{detail,code}`,
 * `{detail,default_code}`, `{default_detail,default_code}`, `{error}` and plain `{detail}` all occur, and `code` is a
 * string or a number (SnapTrade spec, its error schemas; answers that integrators have published).
 */
import { jsonReply, type Reply } from "@/sandbox/snaptrade/reply";
import type { WireObject } from "@/sandbox/snaptrade/wire";

/** The usual body of each error status; also what a fault answers that names a status and no body. */
const USUAL_BODIES: Readonly<Record<number, WireObject>> = {
  401: { detail: "Unable to verify signature sent", status_code: 401, code: "1076" },
  402: { detail: "Unable to sync with brokerage account because the connection is disabled.", code: 3003 },
  403: { detail: "Feature is not enabled for this customer or this connection", default_code: 1141 },
  404: { detail: "Object matching query does not exist", status_code: 404, code: "1011" },
  405: { detail: "Method not allowed." },
  410: { detail: "This endpoint is no longer available for your account." },
  425: { detail: "The resource is currently being populated. Please try again later.", code: 3012 },
  429: { detail: "Request was throttled. Expected available in 7 seconds.", status_code: 429, code: "0000" },
  500: { default_detail: "Encountered an unexpected error", default_code: 1000 },
  501: { error: "This brokerage does not support this endpoint" },
  503: { detail: "The brokerage connection is busy syncing. Safe to retry.", status_code: 503, code: "3002" },
};

/** `status` with its usual body. */
export function usualReply(status: number): Reply {
  return jsonReply(status, USUAL_BODIES[status] ?? { detail: `Status ${status}`, status_code: status });
}

export function userNotFound(): Reply {
  return jsonReply(401, { detail: "User not found", status_code: 401, code: "0000" });
}

export function noSuchEndpoint(method: string, path: string): Reply {
  return jsonReply(404, { detail: `The simulator does not serve ${method} ${path}` });
}

export function badParameter(name: string, value: string): Reply {
  return jsonReply(400, { detail: `Invalid value for ${name}: ${value}`, status_code: 400, code: "1000" });
}

/** This 429 is the connection's own and says nothing about the rate limit. */
export function refreshedTooRecently(): Reply {
  const detail = "Connection refreshed too recently. Please try again later.";
  return jsonReply(429, { detail, status_code: 429, code: "throttled" });
}

export function overLimit(seconds: number): Reply {
  const detail = `Request was throttled. Expected available in ${seconds} seconds.`;
  return jsonReply(429, { detail, status_code: 429, code: "0000" });
}
