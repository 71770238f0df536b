import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";

export type SignedEvent = { body: string; signature: string };

/** Connections that are kept; a request waits for a free one. */
export function connect(url: string, connections: number): Pool {
  return new Pool(url, { connections, pipelining: 1 });
}

/** The outcome that the answer names; another status as `status 503`. */
export async function post(pool: Pool, path: string, { body, signature }: SignedEvent): Promise<string> {
  const headers = { "content-type": "application/json", signature };
  const answer = await pool.request({ path, method: "POST", headers, body });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) return `status ${answer.statusCode}`;
  return /^\{"outcome":"([^"]*)"/.exec(text)?.[1] ?? "no outcome";
}

/** Posts all, always `inFlight` at a time. Returns the outcomes. */
export async function postAll(
  pool: Pool,
  events: readonly SignedEvent[],
  path: string,
  inFlight: number,
): Promise<string[]> {
  const outcomes: string[] = [];
  let next = 0;
  const work = async () => {
    for (let event = events[next++]; event !== undefined; event = events[next++]) {
      outcomes.push(await post(pool, path, event));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
  return outcomes;
}

/**
 * Posts at a constant rate, however long the answers take. Each event's time is that from its planned moment to its answer:
 * one that had to wait for another is not forgotten.
 */
export async function postAtRate(
  pool: Pool,
  events: readonly SignedEvent[],
  path: string,
  perSecond: number,
): Promise<{ outcome: string; tookMs: number }[]> {
  const startMs = performance.now() + 50;
  return Promise.all(
    events.map(async (event, i) => {
      const plannedMs = startMs + (i * 1000) / perSecond;
      await sleep(plannedMs - performance.now());
      const outcome = await post(pool, path, event);
      return { outcome, tookMs: performance.now() - plannedMs };
    }),
  );
}
