import { failure, type Report, type Tools } from "@/lib/cli/report";

/**
 * QStash holds back every delivery under our flow-control key. Webhooks are still accepted and their jobs queued; health
 * turns 503 once a job is 15 min past its time.
 */
export async function pauseDeliveries(tools: Tools): Promise<Report> {
  return switched(tools, true, "paused: no job runs. Webhooks are still accepted. To go on: npm run ops -- resume");
}

/** The deliveries that were held back come at the pace of the flow control; those that are old by then do nothing. */
export async function resumeDeliveries(tools: Tools): Promise<Report> {
  return switched(tools, false, "going on.");
}

async function switched({ service }: Tools, paused: boolean, text: string): Promise<Report> {
  const { flowControlKey } = service.env.qstash;
  try {
    await (paused ? service.publisher.pause() : service.publisher.resume());
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : "no reason";
    return failure(
      `QStash did not take it: ${reason}. Nothing may have changed; check QSTASH_URL and QSTASH_TOKEN (of one region).`,
    );
  }
  return { exit: 0, document: { flowControlKey, paused }, text: `Deliveries under ${flowControlKey} are ${text}` };
}
