import { Sender } from "@/sandbox/qstash/attempt";
import { Broker } from "@/sandbox/qstash/broker";
import { controlRoutes } from "@/sandbox/qstash/control-routes";
import { DEDUPLICATION_WINDOW_MS } from "@/sandbox/qstash/deduplication";
import { createDeliverer } from "@/sandbox/qstash/delivery";
import { dlqRoutes } from "@/sandbox/qstash/dlq-routes";
import { FaultBoard, type Faults } from "@/sandbox/qstash/faults";
import { flowRoutes } from "@/sandbox/qstash/flow-routes";
import { listen } from "@/sandbox/qstash/http-server";
import { keyRoutes } from "@/sandbox/qstash/key-routes";
import { messageRoutes } from "@/sandbox/qstash/message-routes";
import { publishRoutes } from "@/sandbox/qstash/publish-routes";
import { queueRoutes } from "@/sandbox/qstash/queue-routes";
import { type ApiRequest, dispatch, type Reply, type Route, refusal } from "@/sandbox/qstash/route";
import { Signer } from "@/sandbox/qstash/signer";
import { type QStashState, RequestCounter, readState } from "@/sandbox/qstash/state";
import { VirtualClock } from "@/sandbox/qstash/virtual-clock";

/** Upstash pricing, pay-as-you-go: max parallelism. */
const DEFAULT_GLOBAL_PARALLELISM = 100;

export type { Faults, QStashState };

export type QStashOptions = {
  /** 0 takes a free port. */
  port: number;
  token: string;
  currentSigningKey: string;
  nextSigningKey: string;
  /** 60: a minute of emulated time (delays, backoff, windows, time limits) passes in a real second. 0: only by `advance`. */
  timeScale?: number;
  dedupWindowMs?: number;
  /** The plan's cap on calls under way, over all flow-control keys. */
  globalParallelism?: number;
};

export type RunningQStash = {
  url: string;
  close(): Promise<void>;
  state(): QStashState;
  /** Drops all messages, counters, limits and faults; calls under way are cut. Clock and signing keys stay. */
  reset(): void;
  clock: { now(): number; setScale(scale: number): void; advance(ms: number): void };
  /** Each `set` replaces all faults; `{}` switches them off. */
  faults: { set(faults: Faults): void; readonly current: Faults };
};

/**
 * Starts an emulator of QStash on the loopback interface, written from Upstash's public documentation, that the published client and
 * receiver work with unchanged. Everything is kept in memory. Not emulated: schedules, URL groups, redaction, retention,
 * rate limits of the management API, and the host blocker.
 */
export async function startQStash(options: QStashOptions): Promise<RunningQStash> {
  const clock = new VirtualClock(options.timeScale ?? 1);
  const signer = new Signer({ current: options.currentSigningKey, next: options.nextSigningKey });
  const sender = new Sender();
  const faults = new FaultBoard(() =>
    broker.flow.hold(faults.current.outage === true || faults.current.stall === true),
  );
  const newBroker = () =>
    new Broker({
      clock,
      faults,
      deliverer: createDeliverer(clock, signer, sender, faults),
      globalParallelism: options.globalParallelism ?? DEFAULT_GLOBAL_PARALLELISM,
      dedupWindowMs: options.dedupWindowMs ?? DEDUPLICATION_WINDOW_MS,
    });
  let broker = newBroker();
  let counter = new RequestCounter();

  const state = () =>
    readState({ broker, counter, faults: faults.current, clockMs: clock.now(), timeScale: clock.scale });
  const reset = () => {
    broker.stop();
    broker = newBroker();
    counter = new RequestCounter();
    faults.set({});
  };

  const control = controlRoutes({ state, reset, faults, clock });
  const api: Route[] = [
    ...publishRoutes(() => broker, faults),
    ...messageRoutes(() => broker),
    ...dlqRoutes(() => broker),
    ...flowRoutes(() => broker),
    ...queueRoutes(() => broker),
    ...keyRoutes(signer),
  ];

  function handle(request: ApiRequest): Reply {
    if (request.target.startsWith("/_sim/")) return dispatch(control, request);
    counter.count(request.target);
    if (faults.current.outage) return { kind: "cut" };
    if (!isAuthorized(request, options.token)) return refusal(401, "unauthorized");
    request.query.delete("qstash_token");
    return dispatch(api, request);
  }

  const server = await listen(options.port, handle);
  return {
    url: server.url,
    async close() {
      broker.stop();
      clock.stop();
      sender.close();
      await server.close();
    },
    state,
    reset,
    clock,
    faults,
  };
}

/** QStash docs, api/authentication: the bearer token, or `qstash_token` in the query. */
function isAuthorized({ headers, query }: ApiRequest, token: string): boolean {
  return headers.authorization === `Bearer ${token}` || query.get("qstash_token") === token;
}
