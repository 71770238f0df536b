import { randomUUID } from "node:crypto";
import { z } from "zod";
import { makeWebhook } from "@/sandbox/snaptrade/sign-webhook";

const answer = z.object({ outcome: z.string().optional(), jobId: z.string().optional() });
export type WebhookAnswer = { status: number } & z.infer<typeof answer>;

/** Posts a signed event; what is not given is made up: a fresh webhook id, now, the seeded user of `acct-0000`. */
export async function postEvent(
  app: { url: string; clientId: string; consumerKeys: readonly string[] },
  fields: Record<string, unknown>,
): Promise<WebhookAnswer> {
  const event = {
    webhookId: randomUUID(),
    clientId: app.clientId,
    eventTimestamp: new Date().toISOString(),
    userId: "user-0000",
    ...fields,
  };
  const { body, signature } = makeWebhook(event, app.consumerKeys[0] ?? "");
  const answered = await fetch(`${app.url}/api/snaptrade/webhook`, { method: "POST", body, headers: { signature } });
  return { status: answered.status, ...answer.parse(await answered.json()) };
}
