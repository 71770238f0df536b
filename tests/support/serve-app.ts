import { serve } from "@hono/node-server";
import { createService } from "@/lib/composition";
import { parseEnv } from "@/lib/env";
import { createLogger } from "@/lib/log";
import { encryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";
import type { RunningSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { appRoutes } from "@/tests/support/app-routes";
import { type LocalStack, type LocalStackOptions, startLocalStack } from "@/tests/support/local-stack";
import { postEvent, type WebhookAnswer } from "@/tests/support/post-event";

export type ServedApp<O extends LocalStackOptions> = {
  stack: LocalStack<O>;
  service: Service;
  url: string;
  /** Posts a signed event; what is not given is made up: a fresh webhook id, now, the seeded user of `acct-0000`. */
  post(fields: Record<string, unknown>): Promise<WebhookAnswer>;
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
  const routes = appRoutes(service);
  handle = routes.answer;
  const users = () => (stack as { snaptrade: RunningSnapTrade | undefined }).snaptrade?.users() ?? [];
  return {
    stack,
    service,
    url,
    log,
    post: (fields) =>
      postEvent(
        { url, ...parsed.env.snaptrade },
        { eventTimestamp: new Date(service.clock()).toISOString(), ...fields },
      ),
    async addUsers() {
      for (const { userId, userSecret } of users()) {
        const secretCiphertext = encryptSecret(userSecret, parsed.env.snaptrade.secretsKeys, userId);
        await service.store.putUser({ userId, secretCiphertext });
      }
    },
    settled: routes.settled,
    async close() {
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await stack.close();
    },
  };
}
