import type { Clock } from "@/lib/domain";
import { classifyAnswer, readLimits } from "@/lib/provider/classify-answer";
import { parseProviderJson } from "@/lib/provider/json-text";
import type { Answer, Failure, LimitReport, Provider, ProviderUser } from "@/lib/provider/provider";
import { readAccount, readAccounts } from "@/lib/provider/read-accounts";
import { readActivities } from "@/lib/provider/read-activities";
import { readBalances } from "@/lib/provider/read-balances";
import { readConnections } from "@/lib/provider/read-connections";
import { readOrders } from "@/lib/provider/read-orders";
import { readPositions } from "@/lib/provider/read-positions";
import { redact } from "@/lib/provider/redact";
import type { CooldownBounds } from "@/lib/provider/retry-after";
import { type SdkResponse, sendRequest } from "@/lib/provider/send-request";
import { lazySnapTradeSdk, type SnapTradeSdk } from "@/lib/provider/snaptrade-sdk";
import type { Read } from "@/lib/provider/wire-values";

export type ProviderOptions = {
  clientId: string;
  /** The first of the configured keys; it signs. */
  consumerKey: string;
  baseUrl: string;
  /** For one call, body included. Where several are so slow, the run's own deadline of 45 s comes first. */
  requestTimeoutMs?: number;
  /** A page of 1000 activities is about 1 MB; a body beyond this is a fault, not data. */
  maxBodyBytes?: number;
  clock: Clock;
  cooldown: CooldownBounds;
};

/** One request: how to send it through the SDK, and how to read the body of a 200. */
type Request<T> = {
  send: (sdk: SnapTradeSdk, options: { signal: AbortSignal }) => Promise<SdkResponse>;
  read: (json: unknown) => Read<T>;
};

function withoutSecrets(failure: Failure, secrets: string[]): Failure {
  if ("reason" in failure) return { ...failure, reason: redact(failure.reason, secrets) };
  if ("warning" in failure) return { ...failure, warning: redact(failure.warning, secrets) };
  return failure;
}

/**
 * The provider port over the official SDK. Each method makes exactly one HTTP request: no retry, no sleep, no
 * redirect. It never throws for anything that SnapTrade or the network can do, and no reason that it gives holds a URL
 * or a secret (I10). A body that is not of the documented shape is `failed`, never an empty list (I7).
 */
export function createProvider(options: ProviderOptions): Provider {
  const { consumerKey, clock, cooldown } = options;
  const limits = {
    timeoutMs: options.requestTimeoutMs ?? 15_000,
    maxBodyBytes: options.maxBodyBytes ?? 10 * 1024 * 1024,
  };
  const sdk = lazySnapTradeSdk(options);

  async function ask<T>(user: ProviderUser, signal: AbortSignal, request: Request<T>): Promise<Answer<T>> {
    const fail = (failure: Failure, report: LimitReport, status: number): Answer<T> => ({
      ...withoutSecrets(failure, [user.userSecret, consumerKey]),
      limits: report,
      status,
    });

    const loaded = await sdk();
    const sent = await sendRequest((signal) => request.send(loaded, { signal }), signal, limits);
    if (sent.kind === "aborted") return fail({ kind: "aborted" }, {}, 0);
    if (sent.kind === "unanswered") return fail({ kind: "failed", status: 0, reason: sent.reason }, {}, 0);

    const { answer, bodyFault } = sent;
    const report = readLimits(answer.header);
    const failed = (reason: string) => fail({ kind: "failed", status: answer.status, reason }, report, answer.status);
    const failure = classifyAnswer(answer, cooldown, clock);
    if (failure) return fail(failure, report, answer.status);
    if (bodyFault !== null) return failed(bodyFault);
    const parsed = parseProviderJson(answer.body);
    if (!parsed.ok) return failed(`the body is not JSON: ${parsed.reason}`);
    const read = request.read(parsed.json);
    if (!read.ok) return failed(`not the documented shape: ${read.reason}`);
    return { kind: "ok", value: read.value, limits: report, status: answer.status };
  }

  function askAccount<T>(
    user: ProviderUser,
    accountId: string,
    signal: AbortSignal,
    request: Request<T>,
  ): Promise<Answer<T>> {
    // `URL` resolves dot segments even from an encoded path: `/accounts/../balances` would ask for something else.
    if (/^\.*$/.test(accountId)) {
      const reason = `account id ${JSON.stringify(accountId)} cannot stand in a path`;
      return Promise.resolve({ kind: "refused", status: 0, reason, limits: {} });
    }
    return ask(user, signal, request);
  }

  return {
    listConnections: (user, signal) =>
      ask(user, signal, {
        send: (sdk, options) => sdk.connections.listBrokerageAuthorizations(user, options),
        read: readConnections,
      }),
    listAccounts: (user, signal) =>
      ask(user, signal, {
        send: (sdk, options) => sdk.accountInformation.listUserAccounts(user, options),
        read: readAccounts,
      }),
    readAccount: (user, accountId, signal) =>
      askAccount(user, accountId, signal, {
        send: (sdk, options) => sdk.accountInformation.getUserAccountDetails({ ...user, accountId }, options),
        read: (json) => readAccount(json, accountId),
      }),
    readBalances: (user, accountId, signal) =>
      askAccount(user, accountId, signal, {
        send: (sdk, options) => sdk.accountInformation.getUserAccountBalance({ ...user, accountId }, options),
        read: readBalances,
      }),
    readPositions: (user, accountId, signal) =>
      askAccount(user, accountId, signal, {
        send: (sdk, options) => sdk.accountInformation.getAllAccountPositions({ ...user, accountId }, options),
        read: readPositions,
      }),
    readOrders: (user, accountId, signal) =>
      askAccount(user, accountId, signal, {
        send: (sdk, options) =>
          sdk.accountInformation.getUserAccountOrders({ ...user, accountId, state: "all" }, options),
        read: readOrders,
      }),
    readActivities: (user, accountId, query, signal) =>
      askAccount(user, accountId, signal, {
        send: (sdk, options) => sdk.accountInformation.getAccountActivities({ ...user, accountId, ...query }, options),
        read: (json) => readActivities(json, query.offset),
      }),
  };
}
