import { z } from "zod";
import type { Broker } from "@/sandbox/qstash/broker";
import { splitDestination } from "@/sandbox/qstash/destination";
import type { FaultBoard } from "@/sandbox/qstash/faults";
import { type PublishInput, parsePublish } from "@/sandbox/qstash/publish-spec";
import { isQueueName, QUEUE_NAME_RULE } from "@/sandbox/qstash/queue-routes";
import { type ApiRequest, answer, parseJson, type Reply, type Route, refusal } from "@/sandbox/qstash/route";

const batchItem = z.object({
  destination: z.string(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.string().optional(),
  queue: z.string().optional(),
});

type Mode = { lose: boolean };
type PublishReply = { status: number; json: { messageId: string; deduplicated?: true } | { error: string } };

/** Publish, enqueue and batch, each subject to the publish faults. */
export function publishRoutes(broker: () => Broker, faults: FaultBoard): Route[] {
  function publish(input: PublishInput, callerIp: string, mode: Mode): PublishReply {
    const { destination, configuration } = splitDestination(input.destination);
    if (input.queueName !== undefined && !isQueueName(input.queueName)) {
      return { status: 400, json: { error: QUEUE_NAME_RULE } };
    }
    const parsed = parsePublish({ ...input, destination, headers: { ...configuration, ...input.headers } });
    if (parsed.kind === "refused") return { status: parsed.status, json: { error: parsed.error } };
    const { messageId, deduplicated } = broker().publish(parsed.spec, callerIp, mode);
    return deduplicated ? { status: 202, json: { messageId, deduplicated } } : { status: 200, json: { messageId } };
  }

  /** A bad item gets an error entry, the others are sent all the same (QStash docs, features/batch). */
  function publishItem(item: unknown, callerIp: string, mode: Mode): PublishReply["json"] {
    const parsed = batchItem.safeParse(item);
    if (!parsed.success) return { error: `invalid batch item: ${z.prettifyError(parsed.error)}` };
    const { destination, headers = {}, body = "", queue } = parsed.data;
    const lowerCase = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    return publish({ destination, headers: lowerCase, body: Buffer.from(body), queueName: queue }, callerIp, mode).json;
  }

  function withFaults(handle: (request: ApiRequest, groups: string[], mode: Mode) => Reply): Route["handle"] {
    return (request, groups) => {
      const fault = faults.takePublishFault();
      if (fault?.kind === "status") return refusal(fault.status, "fault switched on by the test");
      if (fault?.kind === "hang") return { kind: "hang" };
      const reply = handle(request, groups, { lose: fault?.kind === "acknowledgeAndLose" });
      return fault?.kind === "storeAndDropAnswer" ? { kind: "cut" } : reply;
    };
  }

  return [
    {
      method: "POST",
      pattern: /^\/v2\/publish\//,
      handle: withFaults(({ target, headers, body, callerIp }, _groups, mode) => {
        const destination = target.slice("/v2/publish/".length);
        const { status, json } = publish({ destination, headers, body }, callerIp, mode);
        return answer(status, json);
      }),
    },
    {
      method: "POST",
      pattern: /^\/v2\/enqueue\/([^/]+)\//,
      handle: withFaults(({ target, headers, body, callerIp }, [queueName = ""], mode) => {
        const destination = target.slice(`/v2/enqueue/${queueName}/`.length);
        const { status, json } = publish({ destination, headers, body, queueName }, callerIp, mode);
        return answer(status, json);
      }),
    },
    {
      method: "POST",
      pattern: /^\/v2\/batch\/?$/,
      handle: withFaults(({ body, callerIp }, _groups, mode) => {
        const items = z.array(z.unknown()).safeParse(parseJson(body));
        if (!items.success) return refusal(400, "the body of a batch must be a JSON array");
        return answer(
          200,
          items.data.map((item) => publishItem(item, callerIp, mode)),
        );
      }),
    },
  ];
}
