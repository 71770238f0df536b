import { randomUUID } from "node:crypto";
import { type Env, type EnvSource, parseEnv } from "@/lib/env";
import { createScriptRunner } from "@/lib/guards/redis-scripts";
import { createPublisher } from "@/lib/jobs/publisher";
import { createLogger, type Logger } from "@/lib/log";
import { createProvider } from "@/lib/provider/create-provider";
import type { Service } from "@/lib/service";
import { createGuards, type GuardContext } from "@/lib/snaptrade-webhook-guards";
import { createFunctionCaller } from "@/lib/store/call-function";
import { createStore } from "@/lib/store/store";
import { POSTGRES_TIMEOUT_MS, REDIS_TIMEOUT_MS, RUN_LEASE_MS } from "@/lib/timings";

/**
 * The composition root: the one place that knows which part stands behind which port, and that reads the environment for
 * the routes (lib/cli/compose.ts reads it for commands).
 */
export function createService(env: Env, overrides: Partial<Service> = {}): Service {
  const logger = overrides.logger ?? createLogger({ secrets: env.secrets });
  const clock = overrides.clock ?? Date.now;
  const [consumerKey = ""] = env.snaptrade.consumerKeys;
  return {
    env,
    logger,
    clock,
    guards: createGuards(guardContext(env, logger)),
    store: createStore(createFunctionCaller({ ...env.supabase, timeoutMs: POSTGRES_TIMEOUT_MS })),
    publisher: createPublisher(env),
    provider: createProvider({
      clientId: env.snaptrade.clientId,
      consumerKey,
      baseUrl: env.snaptrade.apiUrl,
      clock,
      cooldown: { defaultMs: env.limits.cooldownDefaultMs, maxMs: env.limits.cooldownMaxMs },
    }),
    newId: randomUUID,
    deadline: (ms) => AbortSignal.timeout(ms),
    reach: async () => {},
    ...overrides,
  };
}

/** What the guards need of the environment. Redis's own clock counts: no instance's clock can shift the budget. */
export function guardContext(env: Env, logger: Logger, timeoutMs: number = REDIS_TIMEOUT_MS): GuardContext {
  return {
    settings: {
      keyPrefix: env.redis.keyPrefix,
      webhookTtlMs: env.ttl.webhookMs,
      queuedTtlMs: env.ttl.queuedMs,
      lockTtlMs: env.ttl.lockMs,
      leaseMs: RUN_LEASE_MS,
      rateLimit: env.limits.rateLimit,
      backgroundShare: env.limits.backgroundShare,
      rateWindowMs: env.limits.rateWindowMs,
    },
    scripts: createScriptRunner({ url: env.redis.url, token: env.redis.token, timeoutMs, logger }),
  };
}

export type Composed = { kind: "ok"; service: Service; warnings: string[] } | { kind: "bad"; faults: string[] };

/** The service of an environment, or what is wrong with that environment. */
export function composeService(source: EnvSource): Composed {
  const parsed = parseEnv(source);
  if (parsed.kind === "bad") return parsed;
  return { kind: "ok", service: createService(parsed.env), warnings: parsed.warnings };
}

let composed: Composed | undefined;

/** The service of this process, made when first asked for. */
export function processService(): Composed {
  composed ??= composeService(process.env);
  return composed;
}
