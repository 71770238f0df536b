import { usualReply } from "@/sandbox/snaptrade/provider-errors";
import type { Reply } from "@/sandbox/snaptrade/reply";

export type FaultRespond = {
  status?: number | undefined;
  /** Laid over the answer's own; null removes one. */
  headers?: Record<string, string | null> | undefined;
  /** Text as it goes over the wire. */
  body?: string | undefined;
  delayMs?: number | undefined;
  drop?: "whole" | "half" | undefined;
};

export type Fault = {
  match: { path?: string | undefined; accountId?: string | undefined };
  respond: FaultRespond;
  times: number;
};

/** Faults in the order in which they were set; each matching call uses up one of the first that matches. */
export class Faults {
  #faults: { fault: Fault; matches: (path: string, accountId: string | null) => boolean; left: number }[] = [];

  add(fault: Fault): void {
    this.#faults.push({ fault, matches: matcher(fault.match), left: fault.times });
  }

  take(path: string, accountId: string | null): FaultRespond | null {
    const found = this.#faults.find(({ matches }) => matches(path, accountId));
    if (found === undefined) return null;
    found.left -= 1;
    if (found.left === 0) this.#faults = this.#faults.filter((other) => other !== found);
    return found.fault.respond;
  }

  clear(): void {
    this.#faults = [];
  }
}

/**
 * The answer that a fault makes of the usual one. A status of 300 or more, or a body, replaces it (a status alone has
 * its usual body, a body alone answers 200); `delayMs` alone sends it late. Headers are laid over at the end.
 */
export function applyFault(respond: FaultRespond, usual: () => Reply): Reply {
  const { status, body, delayMs, drop } = respond;
  const replaced = body !== undefined || (status !== undefined && status >= 300);
  const base = replaced ? usualReply(status ?? 200) : usual();
  const html = body?.trimStart().startsWith("<") === true;
  return {
    status: status ?? base.status,
    headers: html ? { ...base.headers, "Content-Type": "text/html" } : base.headers,
    body: body ?? base.body,
    ...(delayMs === undefined ? {} : { delayMs }),
    ...(drop === undefined ? {} : { drop }),
  };
}

/** Names are compared without case; null removes. */
export function layHeadersOver(
  headers: Record<string, string>,
  changes: FaultRespond["headers"],
): Record<string, string> {
  const changed = new Set(Object.keys(changes ?? {}).map((name) => name.toLowerCase()));
  const kept = Object.entries(headers).filter(([name]) => !changed.has(name.toLowerCase()));
  const added = Object.entries(changes ?? {}).flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
  return Object.fromEntries([...kept, ...added]);
}

/**
 * `path` is matched against the path without query and without `/api/v1`. With `*` (any text) or `{name}` (one segment)
 * it must fit the whole path, as in `/accounts/{accountId}/balances` or `/accounts/*`; without them it matches wherever
 * it occurs. No match at all means every call.
 */
function matcher({ path, accountId }: Fault["match"]): (path: string, accountId: string | null) => boolean {
  const pattern = path === undefined ? null : pathPattern(path);
  return (calledPath, calledAccount) =>
    (pattern === null || pattern.test(calledPath)) && (accountId === undefined || accountId === calledAccount);
}

function pathPattern(path: string): RegExp {
  const parts = path.split(/(\*|\{[^}/]*\})/);
  const source = parts.map((part, i) => (i % 2 === 0 ? escaped(part) : part === "*" ? ".*" : "[^/]+")).join("");
  return new RegExp(parts.length === 1 ? source : `^${source}$`);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
