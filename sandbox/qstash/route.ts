import type { HeaderRecord } from "@/sandbox/qstash/message";

export type ApiRequest = {
  method: string;
  /** The request target as it came: never decoded, never normalised, because destinations stand in it raw. */
  target: string;
  query: URLSearchParams;
  headers: HeaderRecord;
  body: Buffer;
  callerIp: string;
};

/** `hang`: the connection stays open without an answer. `cut`: it is closed without one. */
export type Reply = { kind: "answer"; status: number; json?: unknown } | { kind: "hang" } | { kind: "cut" };

export type Route = {
  method: string;
  /** Matched against the target up to its first question mark; the groups are handed over as they stand there. */
  pattern: RegExp;
  handle(request: ApiRequest, groups: string[]): Reply;
};

export function answer(status: number, json?: unknown): Reply {
  return json === undefined ? { kind: "answer", status } : { kind: "answer", status, json };
}

/** Every error of the API has this body. */
export function refusal(status: number, error: string): Reply {
  return answer(status, { error });
}

/** Undefined if it is no JSON. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** The answer of the first route that fits; 404 if none does. */
export function dispatch(routes: Route[], request: ApiRequest): Reply {
  const [path = ""] = request.target.split("?", 1);
  for (const route of routes) {
    const match = route.method === request.method ? route.pattern.exec(path) : null;
    if (match !== null) return route.handle(request, match.slice(1));
  }
  return refusal(404, `no such endpoint: ${request.method} ${path}`);
}
