import type { Clock } from "@/lib/domain";
import type { Env } from "@/lib/env";
import type { Publisher } from "@/lib/jobs/publisher";
import type { Logger } from "@/lib/log";
import type { Provider } from "@/lib/provider/provider";
import type { Guards } from "@/lib/snaptrade-webhook-guards";
import type { Store } from "@/lib/store/store";

/**
 * Named moments between two awaits. Off, they cost nothing; a test holds one to force an interleaving, or kills there.
 */
export type RacePoint =
  | "intake:claimed"
  | "intake:accepted"
  | "intake:settled"
  | "intake:published"
  | "intake:verified"
  | "run:admitted"
  | "run:begun"
  | "run:unqueued"
  | "run:read"
  | "run:page"
  | "run:committed"
  | "run:released"
  | "run:published"
  | "sweep:listed"
  | "sweep:reserved"
  | "sweep:accepted"
  | "sweep:published"
  | "reconcile:taken"
  | "reconcile:listed"
  | "reconcile:reserved"
  | "reconcile:handed-out"
  | "reconcile:published";

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
