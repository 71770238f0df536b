import { Snaptrade, SnaptradeAuth } from "snaptrade-typescript-sdk";
import { afterEach } from "vitest";
import { type RunningSnapTrade, type SnapTradeOptions, startSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { isWireObject, readWire, type WireObject } from "@/sandbox/snaptrade/wire";

export const CLIENT_ID = "SANDBOXCLIENT";
export const CONSUMER_KEY = "sandbox-consumer-key";
/** 2026-11-29T12:00:00Z */
export const NOON = Date.UTC(2026, 10, 29, 12);

/** A clock that only moves when told. */
export function steppedClock(startMs = NOON): { clock: () => number; step: (ms: number) => void } {
  let now = startMs;
  return {
    clock: () => now,
    step: (ms) => {
      now += ms;
    },
  };
}

const running: RunningSnapTrade[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((sim) => sim.close()));
});

/** Started on a free port and closed after the test. */
export async function simulator(options: Partial<SnapTradeOptions> = {}): Promise<RunningSnapTrade> {
  const sim = await startSnapTrade({
    port: 0,
    clientId: CLIENT_ID,
    consumerKey: CONSUMER_KEY,
    accounts: 6,
    rateLimitPerMinute: 10_000,
    ...options,
  });
  running.push(sim);
  return sim;
}

export function ownerOf(sim: RunningSnapTrade, accountId: string): { userId: string; userSecret: string } {
  const userId = sim.account(accountId)?.userId;
  const user = sim.users().find((candidate) => candidate.userId === userId);
  if (user === undefined) throw new Error(`No user of ${accountId}`);
  return user;
}

/** The real SDK against the simulator. Every status is an answer, so that the SDK neither throws nor waits on a 429. */
export function sdk(
  basePath: string,
  { consumerKey = CONSUMER_KEY, clientId = CLIENT_ID }: { consumerKey?: string; clientId?: string } = {},
) {
  return new Snaptrade({
    auth: SnaptradeAuth.commercialApiKey({ clientId, consumerKey }),
    basePath,
    baseOptions: { timeout: 10_000, validateStatus: () => true },
  });
}

/** An answer's text as it came, for the numbers in it. */
export const rawText = { transformResponse: (text: string) => text, responseType: "text" } as const;

/** One call through the SDK whose body is left as text and read without loss. */
export function lossless(response: { data: unknown }): unknown {
  return readWire(String(response.data));
}

export function asObject(value: unknown): WireObject {
  if (!isWireObject(value)) throw new Error(`Expected an object, got ${JSON.stringify(value)}`);
  return value;
}

export function asList(value: unknown): WireObject[] {
  if (!Array.isArray(value)) throw new Error(`Expected a list, got ${JSON.stringify(value)}`);
  return value.map(asObject);
}

/** One call of the control API; `body` as an object or, where the numbers' text matters, as text. */
export async function control(
  sim: RunningSnapTrade,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string; json: WireObject }> {
  const response = await fetch(`${sim.url}/_sim/${path}`, {
    method,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, json: asObject(readWire(text)) };
}
