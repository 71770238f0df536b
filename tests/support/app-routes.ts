import {
  receiveHealth,
  receiveMetrics,
  receiveReconcile,
  receiveSweepPage,
  receiveSweepStart,
} from "@/lib/http/receive-cron";
import { type Handler, handled } from "@/lib/http/route";
import { receiveDelivery } from "@/lib/jobs/receive-delivery";
import { receiveFailedMessage } from "@/lib/jobs/receive-failed-message";
import type { Service } from "@/lib/service";
import { receiveWebhook } from "@/lib/webhook/receive-webhook";

export type AppRoutes = {
  answer(request: Request): Promise<Response>;
  /** Resolves when everything that ran after a response has ended. */
  settled(): Promise<void>;
};

/** The routes of `app/api` over a service of the caller's making, without Next.js. */
export function appRoutes(service: Service): AppRoutes {
  const after = new Set<Promise<void>>();
  const routes: Record<string, Handler> = {
    "/api/snaptrade/webhook": (given, request) =>
      receiveWebhook(given, request, (task) => {
        const running = task().finally(() => after.delete(running));
        after.add(running);
      }),
    "/api/internal/process-snaptrade-holdings-sync": (given, request) => receiveDelivery(given, "holdings", request),
    "/api/internal/process-snaptrade-transactions-sync": (given, request) =>
      receiveDelivery(given, "transactions", request),
    "/api/internal/snaptrade-sync-failed": receiveFailedMessage,
    "/api/cron/process-stale-snaptrade": receiveSweepPage,
    "/api/cron/schedule-stale-snaptrade": receiveSweepStart,
    "/api/cron/reconcile-snaptrade": receiveReconcile,
    "/api/health": receiveHealth,
    "/api/metrics": receiveMetrics,
  };
  return {
    async answer(request) {
      const found = routes[new URL(request.url).pathname];
      return found === undefined ? new Response(null, { status: 404 }) : await handled(service, found, request);
    },
    async settled() {
      while (after.size > 0) await Promise.all(after);
    },
  };
}
