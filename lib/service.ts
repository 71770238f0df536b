import type { Clock } from "@/lib/domain";
import type { Env } from "@/lib/env";
import type { Publisher } from "@/lib/jobs/publisher";
import type { Logger } from "@/lib/log";
import type { Provider } from "@/lib/provider/provider";
import type { Guards } from "@/lib/snaptrade-webhook-guards";
import type { Store } from "@/lib/store/store";

/**
 * Named moments between two awaits, one after each that leaves something behind outside this process. Off, they cost
 * nothing; a test holds one to force an interleaving, or kills there.
 */
export const RACE_POINTS = [
  "intake:claimed",
  "intake:accepted",
  "intake:claims-released",
  "intake:settled",
  "intake:published",
  "intake:answered",
  "intake:verified",
  "intake:verify-settled",
  "publish:slotted",
  "publish:sent",
  "run:admitted",
  "run:deferred",
  "run:begun",
  "run:readmitted",
  "run:given-back",
  "run:unqueued",
  "run:calls-reserved",
  "run:part",
  "run:limits-told",
  "run:page",
  "run:page-committed",
  "run:read",
  "run:committed",
  "run:released",
  "run:published",
  "callback:handed-out",
  "sweep:started",
  "sweep:listed",
  "sweep:reserved",
  "sweep:accepted",
  "sweep:published",
  "sweep:page-published",
  "reconcile:taken",
  "reconcile:listed",
  "reconcile:reserved",
  "reconcile:handed-out",
  "reconcile:published",
  "reconcile:waiting-released",
  "reconcile:user-listed",
  "reconcile:marked",
] as const;
export type RacePoint = (typeof RACE_POINTS)[number];

/** What every route works with: the ports, the settings and the sources of time and chance. */
export type Service = {
  env: Env;
  guards: Guards;
  store: Store;
  publisher: Publisher;
  provider: Provider;
  logger: Logger;
  clock: Clock;
  newId: () => string;
  /** Aborts after so many milliseconds. */
  deadline: (ms: number) => AbortSignal;
  reach: (point: RacePoint) => Promise<void>;
};
