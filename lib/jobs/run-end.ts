import type { Publishable } from "@/lib/domain";
import type { Failure } from "@/lib/provider/provider";
import type { Parts } from "@/lib/store/store";

/** How the reading of a run ended: what the run does with its job next. */
export type ReadEnd =
  | { kind: "read"; parts: Parts }
  /** Pages were committed on the way, the last one too. */
  | { kind: "committed"; publish: Publishable | null }
  | { kind: "defer"; reason: DeferReason; notBeforeMs: number; parts: Parts }
  | { kind: "fail"; status: number; reason: string; permanent: boolean; parts: Parts }
  /** SnapTrade no longer knows the account: its jobs are to be closed. */
  | { kind: "gone" }
  /** A page's commit found the account gone, and closed its jobs. */
  | { kind: "account_gone" }
  | { kind: "fenced" };

export type DeferReason = "cooldown" | "budget" | "busy" | "deadline";

/** A brokerage connection that is busy syncing is asked again after this. */
export const BUSY_MS = 30_000;

/**
 * What a failed answer means for the job (ARCHITECTURE.md, A run). `part` names what was read.
 * 501 is the caller's: only orders may be unsupported.
 */
export function endOf(failure: Failure, part: string, parts: Parts): ReadEnd {
  switch (failure.kind) {
    case "throttled":
      return { kind: "defer", reason: "cooldown", notBeforeMs: failure.retryAfterMs, parts };
    case "busy":
      return { kind: "defer", reason: "busy", notBeforeMs: BUSY_MS, parts };
    case "gone":
      return { kind: "gone" };
    case "refused":
      return fail(failure.status, `${part}: SnapTrade answered ${failure.status}, ${failure.reason}`, true);
    case "unauthorized":
      return fail(failure.status, `${part}: SnapTrade answered ${failure.status}, ${failure.reason}`, false);
    case "unsupported":
      return fail(501, `${part}: SnapTrade answered 501, not supported by this brokerage`, false);
    case "failed":
      return fail(failure.status, `${part}: ${failure.reason}`, false);
    case "aborted":
      return fail(0, `${part}: the run's own deadline came first`, false);
  }

  function fail(status: number, reason: string, permanent: boolean): ReadEnd {
    return { kind: "fail", status, reason, permanent, parts };
  }
}

/** Whether another part may still be read after this failure: a fault of one endpoint is not one of all. */
export function othersMayBeRead(failure: Failure): boolean {
  return failure.kind === "failed" || failure.kind === "unsupported";
}
