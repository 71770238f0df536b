import { readActivities, readOrders } from "@/sandbox/snaptrade/account-reads";
import type { ApiCall } from "@/sandbox/snaptrade/api-call";
import { noSuchEndpoint, refreshedTooRecently, userNotFound, usualReply } from "@/sandbox/snaptrade/provider-errors";
import { jsonReply, type Reply } from "@/sandbox/snaptrade/reply";
import { type ApiKey, checkSignedRequest } from "@/sandbox/snaptrade/signed-request";
import { isoTimeText } from "@/sandbox/snaptrade/time-text";
import { accountWire, connectionWire, positionsWire } from "@/sandbox/snaptrade/wire-shapes";
import type { SimAccount, SimConnection, World } from "@/sandbox/snaptrade/world";

export type Provider = {
  world: World;
  apiKey: ApiKey;
  /** When each connection was last refreshed by hand. */
  refreshedAt: Map<string, number>;
  /** How soon after one manual refresh the next is refused (undocumented). */
  refreshSpacingMs: number;
};

/** The answer to one call that is within the limits: signature, then owner, then endpoint. */
export function answerApiCall(provider: Provider, call: ApiCall, nowMs: number): Reply {
  if (call.segments.length === 0) {
    return call.method === "GET"
      ? jsonReply(200, { version: 151, online: true, timestamp: isoTimeText(nowMs) })
      : usualReply(405);
  }
  switch (checkSignedRequest(call, provider.apiKey, provider.world.users)) {
    case "bad-signature":
      return usualReply(401);
    case "unknown-user":
      return userNotFound();
    case "genuine":
      return answerGenuine(provider, call, nowMs);
  }
}

function answerGenuine(provider: Provider, call: ApiCall, nowMs: number): Reply {
  const [first, id, ...rest] = call.segments;
  const userId = call.query.get("userId") ?? "";
  const { accounts, connections } = provider.world;
  switch (first) {
    case "accounts": {
      if (id === undefined)
        return onlyGet(call, () =>
          jsonReply(
            200,
            accountsWire(provider.world, (a) => a.userId === userId),
          ),
        );
      const account = accounts.get(id);
      return account?.userId === userId
        ? answerAccount(provider, account, rest.join("/"), call, nowMs)
        : usualReply(404);
    }
    case "authorizations": {
      if (id === undefined) {
        const own = [...connections.values()].filter((connection) => connection.userId === userId);
        return onlyGet(call, () => jsonReply(200, own.map(connectionWire)));
      }
      const connection = connections.get(id);
      return connection?.userId === userId
        ? answerConnection(provider, connection, rest.join("/"), call, nowMs)
        : usualReply(404);
    }
    case "holdings":
    case "activities":
    case "performance":
      return usualReply(410);
    default:
      return noSuchEndpoint(call.method, call.path);
  }
}

function answerAccount(provider: Provider, account: SimAccount, part: string, call: ApiCall, nowMs: number): Reply {
  switch (part) {
    case "":
      return onlyGet(call, () => jsonReply(200, accountsWire(provider.world, (a) => a === account)[0] ?? null));
    case "balances":
      return onlyGet(call, () => jsonReply(200, account.balances));
    case "positions/all":
      return onlyGet(call, () => jsonReply(200, positionsWire(account)));
    case "orders":
      return onlyGet(call, () => readOrders(account, call.query, nowMs));
    case "activities":
      return onlyGet(call, () => readActivities(account, call.query));
    case "holdings":
    case "positions":
    case "options":
      return usualReply(410);
    default:
      return noSuchEndpoint(call.method, call.path);
  }
}

function answerConnection(
  provider: Provider,
  connection: SimConnection,
  part: string,
  call: ApiCall,
  nowMs: number,
): Reply {
  switch (part) {
    case "":
      return onlyGet(call, () => jsonReply(200, connectionWire(connection)));
    case "accounts":
      return onlyGet(call, () =>
        jsonReply(
          200,
          accountsWire(provider.world, (account) => account.connectionId === connection.connectionId),
        ),
      );
    case "refresh":
      return call.method === "POST" ? refresh(provider, connection, nowMs) : usualReply(405);
    default:
      return noSuchEndpoint(call.method, call.path);
  }
}

/**
 * POST /authorizations/{id}/refresh: 402 when disabled, 403 on a real-time connection, 429 `throttled` when too soon.
 * Its completion webhooks are not posted; the control API's emit does that when a test wants them.
 */
function refresh(provider: Provider, { connectionId, disabledDate, realtime }: SimConnection, nowMs: number): Reply {
  if (disabledDate !== null) return usualReply(402);
  if (realtime) return usualReply(403);
  const last = provider.refreshedAt.get(connectionId);
  if (last !== undefined && nowMs < last + provider.refreshSpacingMs) return refreshedTooRecently();
  provider.refreshedAt.set(connectionId, nowMs);
  return jsonReply(200, { detail: `Connection ${connectionId} scheduled for refresh` });
}

function accountsWire({ accounts, connections }: World, wanted: (account: SimAccount) => boolean) {
  return [...accounts.values()].filter(wanted).flatMap((account) => {
    const connection = connections.get(account.connectionId);
    return connection === undefined ? [] : [accountWire(account, connection)];
  });
}

function onlyGet(call: ApiCall, answer: () => Reply): Reply {
  return call.method === "GET" ? answer() : usualReply(405);
}
