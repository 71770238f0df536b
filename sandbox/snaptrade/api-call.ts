/** One request to the simulated API, taken apart once. */
export type ApiCall = {
  method: string;
  /** As sent, without the query (the user's secret travels there and must not reach the call log). */
  sentPath: string;
  /** Without `/api/v1`, which SnapTrade still serves beside its root paths. */
  path: string;
  segments: readonly string[];
  /** The account in the path, or null. */
  accountId: string | null;
  rawQuery: string;
  query: URLSearchParams;
  signature: string | undefined;
  body: string;
};

export type RawCall = { method: string; target: string; signature: string | undefined; body: string };

const LEGACY_PREFIX = "/api/v1";

export function readApiCall({ method, target, signature, body }: RawCall): ApiCall {
  const mark = target.indexOf("?");
  const sentPath = mark === -1 ? target : target.slice(0, mark);
  const rawQuery = mark === -1 ? "" : target.slice(mark + 1);
  const path = sentPath.startsWith(`${LEGACY_PREFIX}/`) ? sentPath.slice(LEGACY_PREFIX.length) : sentPath;
  const segments = path.split("/").filter((segment) => segment !== "");
  return {
    method,
    sentPath,
    path,
    segments,
    accountId: segments[0] === "accounts" ? (segments[1] ?? null) : null,
    rawQuery,
    query: new URLSearchParams(rawQuery),
    signature,
    body,
  };
}

export function usesLegacyPrefix(call: ApiCall): boolean {
  return call.path !== call.sentPath;
}
