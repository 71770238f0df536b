import type { WorkType } from "@/lib/domain";
import type { CallLog, LoggedCall } from "@/sandbox/snaptrade/call-log";
import { changedAccount, setDisabled, showAccount } from "@/sandbox/snaptrade/control-account";
import { accountBody, bumpBody, emitBody, faultBody, limitsBody, readBody } from "@/sandbox/snaptrade/control-bodies";
import { postWebhook, webhookFields } from "@/sandbox/snaptrade/emit-webhook";
import type { Faults } from "@/sandbox/snaptrade/faults";
import { usualReply } from "@/sandbox/snaptrade/provider-errors";
import type { Provider } from "@/sandbox/snaptrade/provider-routes";
import type { RateLimits } from "@/sandbox/snaptrade/rate-limits";
import { jsonReply, type Reply } from "@/sandbox/snaptrade/reply";
import { emptyAccount, type SimAccount } from "@/sandbox/snaptrade/world";

/** `maxCallsInWindow` counts as the provider counts: calls answered other than 429. */
export type SimState = { calls: LoggedCall[]; count429: number; maxCallsInWindow: number };

export type Controlled = {
  provider: Provider;
  log: CallLog;
  limits: RateLimits;
  faults: Faults;
  webhookUrl: () => string | undefined;
  now: () => number;
  bump: (accountId: string, workType: WorkType) => SimAccount | undefined;
};

export function readState({ log, limits }: Pick<Controlled, "log" | "limits">): SimState {
  return { calls: log.calls(), count429: log.count429, maxCallsInWindow: limits.maxCallsInWindow };
}

/** Answers `/_sim/...`. These calls are neither counted nor logged nor limited, and take no credentials. */
export async function answerControl(sim: Controlled, method: string, path: string, body: string): Promise<Reply> {
  const [, , name, id] = path.split("/");
  switch (`${method} ${name}`) {
    case "GET state":
      return jsonReply(200, readState(sim));
    case "POST reset":
      return reset(sim);
    case "GET accounts":
      return withAccount(sim, id, (account) => jsonReply(200, showAccount(sim.provider.world, account)));
    case "PUT accounts":
      return putAccount(sim, id ?? "", body);
    case "POST faults":
      return withBody(readBody(faultBody, body), (fault) => {
        sim.faults.add(fault);
        return jsonReply(200, { ok: true });
      });
    case "PUT limits":
      return withBody(readBody(limitsBody, body), (change) => {
        sim.limits.change(change);
        return jsonReply(200, sim.limits.settings);
      });
    case "POST bump":
      return withBody(readBody(bumpBody, body), ({ accountId, workType }) => {
        const bumped = sim.bump(accountId, workType);
        return bumped === undefined ? usualReply(404) : jsonReply(200, { accountId, versions: bumped.versions });
      });
    case "POST emit":
      return emit(sim, body);
    default:
      return jsonReply(404, { error: `The control API does not know ${method} ${path}` });
  }
}

/** Forgets calls, windows, faults and changed limits. Account data stay: they are the world, not the record of a test. */
function reset({ log, limits, faults, provider }: Controlled): Reply {
  log.reset();
  limits.reset();
  faults.clear();
  provider.refreshedAt.clear();
  return jsonReply(200, { ok: true });
}

function putAccount(sim: Controlled, accountId: string, text: string): Reply {
  return withBody(readBody(accountBody, text), (body) => {
    const { world } = sim.provider;
    const connection = world.connections.get(body.connectionId ?? "");
    const account =
      world.accounts.get(accountId) ??
      (connection === undefined || accountId === "" ? undefined : emptyAccount(accountId, connection, sim.now()));
    if (account === undefined) return usualReply(404);
    const changed = changedAccount(account, body, sim.now());
    world.accounts.set(accountId, changed);
    if (body.disabled !== undefined) setDisabled(world, account.connectionId, body.disabled, sim.now());
    return jsonReply(200, showAccount(world, changed));
  });
}

async function emit(sim: Controlled, text: string): Promise<Reply> {
  const read = readBody(emitBody, text);
  if (!read.ok) return jsonReply(400, { error: read.error });
  const url = sim.webhookUrl();
  if (url === undefined)
    return jsonReply(409, { error: "No webhook URL is set: start with webhookUrl or set it later" });
  const { world, apiKey } = sim.provider;
  const fields = webhookFields(read.value, world, apiKey.clientId, sim.now());
  try {
    return jsonReply(200, await postWebhook(fields, url, apiKey.consumerKey));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return jsonReply(502, { error: `No answer from ${url}: ${reason}`, webhookId: fields.webhookId });
  }
}

function withAccount(sim: Controlled, id: string | undefined, answer: (account: SimAccount) => Reply): Reply {
  const account = sim.provider.world.accounts.get(id ?? "");
  return account === undefined ? usualReply(404) : answer(account);
}

function withBody<T>(read: { ok: true; value: T } | { ok: false; error: string }, answer: (value: T) => Reply): Reply {
  return read.ok ? answer(read.value) : jsonReply(400, { error: read.error });
}
