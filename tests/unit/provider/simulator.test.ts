import { isLosslessNumber } from "lossless-json";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createProvider } from "@/lib/provider/create-provider";
import type { Answer } from "@/lib/provider/provider";
import { type RunningSnapTrade, type SimAccount, startSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { COOLDOWN, noDeadline } from "@/tests/unit/provider/fake-server";

const CLIENT = { clientId: "SANDBOXCLIENT", consumerKey: "sandbox-consumer-key" };
const signal = noDeadline();
const ACCOUNTS = 6;

async function start(rateLimitPerMinute: number) {
  const simulator = await startSnapTrade({ port: 0, ...CLIENT, accounts: ACCOUNTS, rateLimitPerMinute });
  const provider = createProvider({ ...CLIENT, baseUrl: simulator.url, clock: Date.now, cooldown: COOLDOWN });
  return { simulator, provider };
}

function account(simulator: RunningSnapTrade, id: string): SimAccount {
  const found = simulator.account(id);
  if (!found) throw new Error(`The simulator has no ${id}`);
  return found;
}

function userOf(simulator: RunningSnapTrade, userId: string) {
  const found = simulator.users().find((user) => user.userId === userId);
  if (!found) throw new Error(`The simulator has no ${userId}`);
  return found;
}

function valueIn<T>(answer: Answer<T>): T {
  if (answer.kind !== "ok") throw new Error(JSON.stringify(answer));
  return answer.value;
}

const textOf = (wire: unknown) => (isLosslessNumber(wire) ? wire.value : wire);

describe("against the simulator, for every account", () => {
  let running: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    running = await start(250);
  });
  afterAll(() => running.simulator.close());

  test.each(Array.from({ length: ACCOUNTS }, (_, index) => `acct-000${index}`))("%s", async (id) => {
    const { simulator, provider } = running;
    const upstream = account(simulator, id);
    const user = userOf(simulator, upstream.userId);

    const connections = valueIn(await provider.listConnections(user, signal));
    expect(connections).toContainEqual({
      connectionId: upstream.connectionId,
      brokerage: expect.any(String),
      disabled: false,
    });

    const detail = valueIn(await provider.readAccount(user, id, signal));
    expect(detail).toMatchObject({
      accountId: id,
      connectionId: upstream.connectionId,
      institutionAccountId: upstream.institutionAccountId,
      holdingsInitialSyncCompleted: true,
      holdingsLastSuccessfulSync: expect.stringMatching(/^\d{4}-.*Z$/),
      transactionsLastSuccessfulSync: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
    });
    expect(valueIn(await provider.listAccounts(user, signal))).toContainEqual(detail);

    const balances = valueIn(await provider.readBalances(user, id, signal));
    expect(balances.map(({ cash }) => cash)).toEqual(upstream.balances.map(({ cash }) => textOf(cash)));

    const { positions, asOf } = valueIn(await provider.readPositions(user, id, signal));
    expect(asOf).not.toBeNull();
    expect(positions.map(({ units }) => units)).toEqual(upstream.positions.map(({ units }) => textOf(units)));
    expect(new Set(positions.map(({ positionKey }) => positionKey)).size).toBe(upstream.positions.length);

    const orders = valueIn(await provider.readOrders(user, id, signal));
    expect(orders.length).toBeGreaterThan(0);
    expect(new Set(orders.map(({ orderKey }) => orderKey)).size).toBe(orders.length);

    const query = { endDate: new Date().toISOString().slice(0, 10), offset: 0, limit: 1000 };
    const page = valueIn(await provider.readActivities(user, id, query, signal));
    expect(page.total).toBe(upstream.activities.length);
    expect(page.activities.map(({ amount }) => amount)).toEqual(
      upstream.activities.slice(0, 1000).map(({ amount }) => textOf(amount)),
    );
  });

  test("pages together are the whole", async () => {
    const { simulator, provider } = running;
    const upstream = account(simulator, "acct-0000");
    const user = userOf(simulator, upstream.userId);
    const ids: (string | null)[] = [];
    for (let offset = 0; offset < upstream.activities.length; offset += 7) {
      const query = { endDate: "2100-01-01", offset, limit: 7 };
      const page = valueIn(await provider.readActivities(user, "acct-0000", query, signal));
      ids.push(...page.activities.map(({ activityId }) => activityId));
    }
    expect(ids).toEqual(upstream.activities.map(({ id }) => id));
  });

  test("an account that is gone, and a secret that is wrong", async () => {
    const { simulator, provider } = running;
    const [user] = simulator.users();
    if (!user) throw new Error("The simulator has no users");
    expect(await provider.readBalances(user, "acct-9999", signal)).toMatchObject({ kind: "gone" });
    expect(await provider.listAccounts({ ...user, userSecret: "wrong" }, signal)).toMatchObject({
      kind: "unauthorized",
    });
  });
});

test("the limit's last call says that none remains, the next is throttled for as long as the window says", async () => {
  const { simulator, provider } = await start(3);
  try {
    const [user] = simulator.users();
    if (!user) throw new Error("The simulator has no users");
    const remaining: (number | undefined)[] = [];
    for (let call = 0; call < 3; call += 1) {
      const answer = await provider.listAccounts(user, signal);
      expect(answer.kind).toBe("ok");
      remaining.push(answer.limits.remaining);
    }
    expect(remaining).toEqual([2, 1, 0]);
    const throttled = await provider.listAccounts(user, signal);
    expect(throttled).toMatchObject({ kind: "throttled", scope: "client", limits: { limit: 3, remaining: 0 } });
    expect(throttled.kind === "throttled" && throttled.retryAfterMs).toBeGreaterThan(50_000);
    expect(simulator.state().count429).toBe(1);
  } finally {
    await simulator.close();
  }
});
