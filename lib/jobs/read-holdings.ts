import { endOf, othersMayBeRead, type ReadEnd } from "@/lib/jobs/run-end";
import type { LimitWatch } from "@/lib/jobs/watch-limits";
import type { AccountDetail, Answer, Failure, Positions, ProviderUser } from "@/lib/provider/provider";
import type { Service } from "@/lib/service";
import type { Begun } from "@/lib/store/answers";
import type { Parts } from "@/lib/store/store";

/** A run's own means: whose data, how many calls its slot still holds, when to stop. */
export type Reading = {
  accountId: string;
  user: ProviderUser;
  begun: Begun;
  calls: { left: number; slotAt: number };
  watch: Pick<LimitWatch, "see">;
  signal: AbortSignal;
};

/**
 * Reads the three parts one after another (a 429 stops the next call) and gives on what is good. No fault of the provider
 * becomes an empty part (I7): a part is there only if its answer was complete and valid, and none is while the account
 * says that its holdings are unavailable or were never synced. What came empty where some are stored is believed only after
 * the account's own flags were read.
 */
export async function readHoldings(service: Service, reading: Reading): Promise<ReadEnd> {
  const { provider } = service;
  const { accountId, user, begun, signal, watch } = reading;
  const parts: Parts = {};
  const failures: { failure: Failure; part: string }[] = [];

  async function read<T>(part: string, ask: () => Promise<Answer<T>>): Promise<T | null> {
    reading.calls.left -= 1;
    const got = await watch.see(await ask());
    await service.reach("run:part");
    if (got.kind === "ok") return got.value;
    failures.push({ failure: got, part });
    return null;
  }
  /** It had failed upstream before this run: what comes may be old, though an event of meanwhile says that all is well. */
  const hadFailed = (part: string) => begun.failedParts.includes(part);
  /** Positions say themselves how new they are, and the commit refuses older ones; not where they say nothing readable. */
  const mayBeOld = ({ asOf }: Positions) => hadFailed("positions") && Number.isNaN(Date.parse(asOf ?? ""));
  const stopped = () => failures.some(({ failure }) => !othersMayBeRead(failure));

  if (!(await mayCall(service, reading, begun.calls))) {
    return { kind: "defer", reason: "budget", notBeforeMs: 0, parts };
  }
  if (begun.readsAccount) {
    const account = await read("account", () => provider.readAccount(user, accountId, signal));
    if (account === null) return ended();
    parts.account = account;
    if (!isReadable(account)) return { kind: "read", parts: { account, holdings: {} } };
  }
  const holdings: NonNullable<Parts["holdings"]> = {};
  parts.holdings = holdings;
  const doubted: (() => void)[] = [];
  const take = (list: readonly unknown[], isStored: boolean, put: () => void): void => {
    if (list.length === 0 && isStored && !begun.readsAccount) doubted.push(put);
    else put();
  };

  const balances = await read("balances", () => provider.readBalances(user, accountId, signal));
  if (balances !== null && !hadFailed("balances")) {
    take(balances, begun.storedBalances, () => {
      holdings.balances = balances;
    });
  }
  if (stopped()) return ended();
  const positions = await read("positions", () => provider.readPositions(user, accountId, signal));
  if (positions !== null && !mayBeOld(positions)) {
    take(positions.positions, begun.storedPositions, () => {
      holdings.positions = positions;
    });
  }
  if (stopped()) return ended();
  const orders = await read("orders", () => provider.readOrders(user, accountId, signal));
  if (orders !== null && !hadFailed("orders")) {
    take(orders, begun.storedOrders, () => {
      holdings.orders = orders;
    });
  }
  const last = failures.at(-1);
  if (last?.part === "orders" && last.failure.kind === "unsupported") {
    holdings.ordersUnsupported = true;
    failures.pop();
  }
  if (stopped()) return ended();

  if (doubted.length > 0) {
    if (!(await mayCall(service, reading))) {
      return { kind: "defer", reason: "budget", notBeforeMs: 0, parts: { ...parts, rereadAccount: true } };
    }
    const account = await read("account", () => provider.readAccount(user, accountId, signal));
    if (account === null) return ended();
    parts.account = account;
    if (!isReadable(account)) return { kind: "read", parts: { account, holdings: {} } };
    for (const put of doubted) put();
  }
  return failures.length > 0 ? ended() : { kind: "read", parts };

  /** The gravest failure decides: one that stopped the reading, else the first. */
  function ended(): ReadEnd {
    const gravest = failures.find(({ failure }) => !othersMayBeRead(failure)) ?? failures[0];
    if (gravest === undefined) throw new Error("A reading ended without an answer or a failure");
    return endOf(gravest.failure, gravest.part, parts);
  }
}

function isReadable(account: AccountDetail): boolean {
  return account.holdingsUnavailable !== true && account.holdingsInitialSyncCompleted !== false;
}

/** Whether so many calls may be made (I5): what the slot does not hold is reserved, if it is free now. */
export async function mayCall(service: Service, reading: Reading, wanted = 1): Promise<boolean> {
  const missing = wanted - reading.calls.left;
  if (missing > 0) {
    const more = await service.guards.reserveCallsNow(missing, { spares: true });
    reading.calls.left += more.calls;
    // What is not made goes back under one time: that of the oldest.
    if (more.calls > 0) reading.calls.slotAt = Math.min(reading.calls.slotAt, more.slotAt);
    await service.reach("run:calls-reserved");
  }
  return reading.calls.left >= wanted;
}
