import type { Broker } from "@/sandbox/qstash/broker";
import type { FlowControl } from "@/sandbox/qstash/flow-control";
import { answer, type Reply, type Route, refusal } from "@/sandbox/qstash/route";

/** The flow-control management API (QStash docs, features/flowcontrol, "Management API"). It acts at once. */
export function flowRoutes(broker: () => Broker): Route[] {
  const action = (name: string, act: (flow: FlowControl, key: string, query: URLSearchParams) => Reply): Route => ({
    method: "POST",
    pattern: new RegExp(`^/v2/flowControl/([^/]+)/${name}$`),
    handle: ({ query }, [key = ""]) => act(broker().flow, decodeURIComponent(key), query),
  });
  return [
    { method: "GET", pattern: /^\/v2\/flowControl\/?$/, handle: () => answer(200, broker().flow.list()) },
    {
      method: "GET",
      pattern: /^\/v2\/flowControl\/([^/]+)$/,
      handle: (_request, [key = ""]) => {
        const info = broker().flow.info(decodeURIComponent(key));
        return info === undefined ? refusal(404, `flow control key ${key} not found`) : answer(200, info);
      },
    },
    { method: "GET", pattern: /^\/v2\/globalParallelism$/, handle: () => answer(200, broker().flow.global()) },
    action("pause", (flow, key) => {
      flow.setPaused(key, true);
      return answer(200);
    }),
    action("resume", (flow, key) => {
      flow.setPaused(key, false);
      return answer(200);
    }),
    action("pin", pin),
    action("unpin", (flow, key, query) => {
      flow.unpin(key, { parallelism: query.get("parallelism") === "true", rate: query.get("rate") === "true" });
      return answer(200);
    }),
    action("resetRate", (flow, key) => {
      flow.resetRate(key);
      return answer(200);
    }),
  ];
}

/** `period` in seconds. */
function pin(flow: FlowControl, key: string, query: URLSearchParams): Reply {
  const read = (name: string) => {
    const text = query.get(name);
    if (text === null) return undefined;
    return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : Number.NaN;
  };
  const [parallelism, rate, period] = [read("parallelism"), read("rate"), read("period")];
  const given = [parallelism, rate, period].filter((value) => value !== undefined);
  if (given.length === 0 || given.some(Number.isNaN)) {
    return refusal(400, "pin needs parallelism, rate or period as whole numbers above 0");
  }
  flow.pin(key, { parallelism, rate, periodMs: period === undefined ? undefined : period * 1_000 });
  return answer(200);
}
