import { answer } from "@/lib/http/answer";
import { route } from "@/lib/http/route";
import { parseWebhookJson } from "@/lib/webhook/json-text";
import { readBody } from "@/lib/webhook/read-body";
import { verifyWebhook } from "@/lib/webhook/verify-signature";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

/** What no intake can leave out: the body is read and its signature checked, by the service's own code. */
export const POST = route(async ({ env }, request) => {
  const body = await readBody(request);
  const parsed = body.kind === "ok" ? parseWebhookJson(body.bytes) : body;
  if (body.kind !== "ok" || parsed.kind !== "ok") return answer(400, { error: parsed.kind });
  const authentic = verifyWebhook({
    signature: request.headers.get("signature"),
    bytes: body.bytes,
    value: parsed.value,
    consumerKeys: env.snaptrade.consumerKeys,
  });
  return authentic ? answer(200, { outcome: "bare" }) : answer(401, { error: "no valid signature" });
});
