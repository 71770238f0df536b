import { createService } from "@/lib/composition";
import { parseEnv } from "@/lib/env";
import { createLogger } from "@/lib/log";
import type { Service } from "@/lib/service";

export const APP_URL = "https://app.example.com";
export const CONSUMER_KEY = "fuzz-consumer-key";
export const WEBHOOK_SECRET = "fuzz-webhook-secret";
export const CRON_SECRET = "fuzz-cron-secret";
export const SIGNING_KEYS = { current: "sig_fuzz_current", next: "sig_fuzz_next" };
export const NOW = Date.UTC(2026, 8, 1, 12);

/** Nothing listens there (RFC 863, discard): a call past the ports below would fail loudly. */
const NOWHERE = "http://127.0.0.1:9";

type Ports = Pick<Service, "guards" | "store" | "publisher" | "provider">;
/** What a port was asked: `store.acceptEvent`, with its arguments. */
type Call = { name: string; given: unknown[] };

/** Ports that answer what one test needs; any other method of theirs throws, and so ends as a fault in the log. */
export type PortAnswers = { [P in keyof Ports]?: Partial<Ports[P]> };

/** The service in this process over ports that count, its log kept: a hundred thousand requests take seconds. */
export function countingService(answers: PortAnswers, env: Record<string, string> = {}) {
  const parsed = parseEnv({
    APP_URL,
    CRON_SECRET,
    SUPABASE_URL: NOWHERE,
    SUPABASE_SECRET_KEY: "fuzz-supabase-key",
    UPSTASH_REDIS_REST_URL: NOWHERE,
    UPSTASH_REDIS_REST_TOKEN: "fuzz-redis-token",
    QSTASH_URL: NOWHERE,
    QSTASH_TOKEN: "fuzz-qstash-token",
    QSTASH_CURRENT_SIGNING_KEY: SIGNING_KEYS.current,
    QSTASH_NEXT_SIGNING_KEY: SIGNING_KEYS.next,
    SNAPTRADE_CLIENT_ID: "FUZZCLIENT",
    SNAPTRADE_CONSUMER_KEY: CONSUMER_KEY,
    SNAPTRADE_API_URL: NOWHERE,
    SNAPTRADE_SECRETS_KEY: Buffer.alloc(32, 7).toString("base64"),
    ...env,
  });
  if (parsed.kind === "bad") throw new Error(parsed.faults.join("\n"));
  const calls: Call[] = [];
  const lines: string[] = [];
  const port = <P extends keyof Ports>(name: P): Ports[P] => counted<Ports[P]>(name, answers[name] ?? {}, calls);
  const service = createService(parsed.env, {
    logger: createLogger({ secrets: parsed.env.secrets, destination: { write: (line) => void lines.push(line) } }),
    clock: () => NOW,
    guards: port("guards"),
    store: port("store"),
    publisher: port("publisher"),
    provider: port("provider"),
  });
  return {
    service,
    calls,
    lines,
    /** Forgets what was asked and logged. */
    reset() {
      calls.length = 0;
      lines.length = 0;
    },
  };
}

function counted<T extends object>(port: string, methods: Partial<T>, calls: Call[]): T {
  const proxy = new Proxy(methods, {
    get(target, method) {
      const answer: unknown = Reflect.get(target, method);
      return (...given: unknown[]) => {
        const name = `${port}.${String(method)}`;
        calls.push({ name, given });
        if (typeof answer !== "function") throw new Error(`${name} was not expected`);
        return answer(...given);
      };
    },
  });
  // Every method is there: what the test gave, or one that throws.
  return proxy as T;
}
