import { randomUUID } from "node:crypto";
import { serve } from "@hono/node-server";
import { z } from "zod";
import { createService } from "@/lib/composition";
import { parseEnv } from "@/lib/env";
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
import { createLogger } from "@/lib/log";
import { encryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";
import { receiveWebhook } from "@/lib/webhook/receive-webhook";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";
import type { RunningSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { type LocalStack, type LocalStackOptions, startLocalStack } from "@/tests/support/local-stack";

const webhookAnswer = z.object({ outcome: z.string().optional(), jobId: z.string().optional() });

export type ServedApp<O extends LocalStackOptions> = {
  stack: LocalStack<O>;
  service: Service;
  url: string;
  /** Posts a signed event; what is not given is made up: a fresh webhook id, now, the seeded user of `acct-0000`. */
  post(fields: Record<string, unknown>): Promise<{ status: number } & z.infer<typeof webhookAnswer>>;
  /** Stores the simulator's users, as `npm run users` would, without listing their accounts. */
  addUsers(): Promise<void>;
  /** Log lines, parsed. */
  log: Record<string, unknown>[];
  /** Resolves when everything that ran after a response has ended. */
  settled(): Promise<void>;
  close(): Promise<void>;
};

/** The routes' handlers over a local stack, in this process: race points, clocks and logs are within a test's reach. */
export async function serveApp<const O extends LocalStackOptions>(
  options: O,
  given: { env?: Record<string, string>; overrides?: Partial<Service> } = {},
): Promise<ServedApp<O>> {
  let handle: (request: Request) => Promise<Response> = async () => new Response(null, { status: 503 });
  const server = serve({ port: 0, hostname: "127.0.0.1", fetch: (request: Request) => handle(request) });
  await new Promise<void>((resolve) => (server.listening ? resolve() : server.once("listening", () => resolve())));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port");
  const url = `http://127.0.0.1:${address.port}`;
  const stack = await startLocalStack({ ...options, appUrl: url });

  const parsed = parseEnv({ ...stack.env, SNAPTRADE_MIN_RUN_SPACING: "1ms", ...given.env });
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const log: Record<string, unknown>[] = [];
  const logger = createLogger({
    secrets: parsed.env.secrets,
    destination: { write: (line: string) => void log.push(JSON.parse(line)) },
  });
  const service = createService(parsed.env, { logger, ...given.overrides });
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
  handle = async (request) => {
    const found = routes[new URL(request.url).pathname];
    return found === undefined ? new Response(null, { status: 404 }) : await handled(service, found, request);
  };
  const users = () => (stack as { snaptrade: RunningSnapTrade | undefined }).snaptrade?.users() ?? [];
  return {
    stack,
    service,
    url,
    log,
    async post(fields) {
      const event = {
        webhookId: randomUUID(),
        clientId: parsed.env.snaptrade.clientId,
        eventTimestamp: new Date(service.clock()).toISOString(),
        userId: "user-0000",
        ...fields,
      };
      const { body, signature } = makeWebhook(event, parsed.env.snaptrade.consumerKeys[0] ?? "");
      const answered = await fetch(`${url}/api/snaptrade/webhook`, { method: "POST", body, headers: { signature } });
      return { status: answered.status, ...webhookAnswer.parse(await answered.json()) };
    },
    async addUsers() {
      for (const { userId, userSecret } of users()) {
        const secretCiphertext = encryptSecret(userSecret, parsed.env.snaptrade.secretsKeys, userId);
        await service.store.putUser({ userId, secretCiphertext });
      }
    },
    async settled() {
      while (after.size > 0) await Promise.all(after);
    },
    async close() {
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await stack.close();
    },
  };
}
