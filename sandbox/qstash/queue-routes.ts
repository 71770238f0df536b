import { z } from "zod";
import type { Broker } from "@/sandbox/qstash/broker";
import { answer, parseJson, type Reply, type Route, refusal } from "@/sandbox/qstash/route";

export const QUEUE_NAME_RULE = "queue names can only contain alphanumeric characters, hyphens, periods and underscores";

const upsertBody = z.object({
  queueName: z.string(),
  parallelism: z.int().positive().default(1),
  paused: z.boolean().default(false),
});

export function isQueueName(name: string): boolean {
  return /^[A-Za-z0-9._-]+$/.test(name);
}

/** The queue management API, without deletion. */
export function queueRoutes(broker: () => Broker): Route[] {
  const setPaused = (name: string, paused: boolean): Reply => {
    if (!isQueueName(name)) return refusal(400, QUEUE_NAME_RULE);
    broker().queues.upsert(name, { paused });
    return answer(200);
  };
  return [
    {
      method: "POST",
      pattern: /^\/v2\/queues\/?$/,
      handle: ({ body }) => {
        const parsed = upsertBody.safeParse(parseJson(body));
        if (!parsed.success) return refusal(400, z.prettifyError(parsed.error));
        const { queueName, ...change } = parsed.data;
        if (!isQueueName(queueName)) return refusal(400, QUEUE_NAME_RULE);
        broker().queues.upsert(queueName, change);
        return answer(200);
      },
    },
    { method: "GET", pattern: /^\/v2\/queues\/?$/, handle: () => answer(200, broker().queues.list()) },
    {
      method: "GET",
      pattern: /^\/v2\/queues\/([^/]+)$/,
      handle: (_request, [name = ""]) => {
        const info = broker().queues.info(name);
        return info === undefined ? refusal(404, `queue ${name} not found`) : answer(200, info);
      },
    },
    {
      method: "POST",
      pattern: /^\/v2\/queues\/([^/]+)\/pause$/,
      handle: (_request, [name = ""]) => setPaused(name, true),
    },
    {
      method: "POST",
      pattern: /^\/v2\/queues\/([^/]+)\/resume$/,
      handle: (_request, [name = ""]) => setPaused(name, false),
    },
  ];
}
