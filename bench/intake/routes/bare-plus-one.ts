import { createScriptRunner, isAway, type ScriptRunner } from "@/lib/guards/redis-scripts";
import { answer } from "@/lib/http/answer";
import { route } from "@/lib/http/route";
import type { Service } from "@/lib/service";
import { REDIS_TIMEOUT_MS } from "@/lib/timings";
import { parseWebhookJson } from "@/lib/webhook/json-text";
import { readBody } from "@/lib/webhook/read-body";
import { verifyWebhook } from "@/lib/webhook/verify-signature";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";

/** The least that knows an event again: the claim of its id, and what stands there if it was claimed before. */
const LUA_CLAIM_ID = `
local value = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) and ARGV[1] or redis.call('GET', KEYS[1])
return {value == ARGV[1] and 'claimed' or 'duplicate', ''}
`;
const DAY_S = 86_400;

let scripts: ScriptRunner | undefined;

function runnerOf({ env, logger }: Service): ScriptRunner {
  scripts ??= createScriptRunner({ url: env.redis.url, token: env.redis.token, timeoutMs: REDIS_TIMEOUT_MS, logger });
  return scripts;
}

/** `bare`, and one script through the client that the service uses. */
export const POST = route(async (service, request) => {
  const body = await readBody(request);
  const parsed = body.kind === "ok" ? parseWebhookJson(body.bytes) : body;
  if (body.kind !== "ok" || parsed.kind !== "ok") return answer(400, { error: parsed.kind });
  const authentic = verifyWebhook({
    signature: request.headers.get("signature"),
    bytes: body.bytes,
    value: parsed.value,
    consumerKeys: service.env.snaptrade.consumerKeys,
  });
  if (!authentic) return answer(401, { error: "no valid signature" });
  const key = `bench:webhook:${parsed.value.get("webhookId")}`;
  const claimed = await runnerOf(service).run(LUA_CLAIM_ID, [key], [`pending:${service.newId()}`, DAY_S]);
  return isAway(claimed) ? answer(503, { error: "Redis is away" }) : answer(200, { outcome: "bare+1" });
});
