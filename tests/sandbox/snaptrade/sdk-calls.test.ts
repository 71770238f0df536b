import { SnaptradeError } from "snaptrade-typescript-sdk";
import { describe, expect, test } from "vitest";
import { asList, asObject, control, lossless, NOON, ownerOf, rawText, sdk, simulator, steppedClock } from "./simulator";

describe("the real SDK reads the simulator as it reads SnapTrade", () => {
  test("the status needs no signature", async () => {
    const sim = await simulator();
    const { status, data } = await sdk(sim.url).apiStatus.check();
    expect([status, data.online]).toEqual([200, true]);
  });

  test("connections: listed, one by one, and with their accounts, always those of the user only", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0002");
    const { connections } = sdk(sim.url);
    const listed = await connections.listBrokerageAuthorizations(user);
    expect(listed.status).toBe(200);
    expect(listed.data.map(({ id }) => id)).toEqual(["conn-0001"]);

    const one = await connections.detailBrokerageAuthorization({ ...user, authorizationId: "conn-0001" });
    expect(one.data).toEqual(listed.data[0]);
    expect(one.data).toMatchObject({ id: "conn-0001", disabled: false, disabled_date: null, type: "read" });

    const accounts = await connections.listBrokerageAuthorizationAccounts({ ...user, authorizationId: "conn-0001" });
    expect(accounts.data.map(({ id }) => id)).toEqual(["acct-0002", "acct-0003"]);
  });

  test("accounts: the list and the detail say the same, with both sync states", async () => {
    const sim = await simulator({ clock: steppedClock().clock });
    const user = ownerOf(sim, "acct-0000");
    const { accountInformation } = sdk(sim.url);
    const list = await accountInformation.listUserAccounts(user);
    expect(list.data.map(({ id }) => id)).toEqual(["acct-0000", "acct-0001"]);
    const detail = await accountInformation.getUserAccountDetails({ ...user, accountId: "acct-0001" });
    expect(detail.data).toEqual(list.data[1]);
    expect(detail.data.brokerage_authorization).toBe("conn-0000");
    expect(detail.data.sync_status.holdings?.last_successful_sync).toMatch(
      /^2026-11-29 1[12]:\d\d:\d\d\.\d{6}\+00:00$/,
    );
    expect(detail.data.sync_status.transactions?.last_successful_sync).toBe("2026-11-28");
  });

  test("balances, positions, orders and activities are what the simulator holds, number for number", async () => {
    const sim = await simulator();
    const at = { ...ownerOf(sim, "acct-0004"), accountId: "acct-0004" };
    const { accountInformation } = sdk(sim.url);
    const account = sim.account("acct-0004");
    const balances = lossless(await accountInformation.getUserAccountBalance(at, rawText));
    expect(balances).toEqual(account?.balances);
    const positions = lossless(await accountInformation.getAllAccountPositions(at, rawText));
    expect(positions).toEqual({ results: account?.positions, data_freshness: { as_of: account?.asOf } });
    const orders = lossless(await accountInformation.getUserAccountOrders({ ...at, days: 90 }, rawText));
    expect(orders).toEqual(account?.orders);
    const activities = lossless(await accountInformation.getAccountActivities(at, rawText));
    expect(asObject(activities).data).toEqual(account?.activities);
  });

  test("the same paths answer under /api/v1, marked as deprecated", async () => {
    const sim = await simulator();
    const at = { ...ownerOf(sim, "acct-0000"), accountId: "acct-0000" };
    const legacy = await sdk(`${sim.url}/api/v1`).accountInformation.getUserAccountBalance(at);
    const root = await sdk(sim.url).accountInformation.getUserAccountBalance(at);
    expect([legacy.status, legacy.data]).toEqual([200, root.data]);
    expect(legacy.headers.deprecation).toBe("@1781222400");
    expect(root.headers.deprecation).toBeUndefined();
  });

  test("retired endpoints answer 410 to a genuine call", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0000");
    const at = { ...user, accountId: "acct-0000" };
    const { accountInformation, options, transactionsAndReporting } = sdk(sim.url);
    const answers = [
      await accountInformation.getAllUserHoldings(user),
      await accountInformation.getUserHoldings(at),
      await accountInformation.getUserAccountPositions(at),
      await options.listOptionHoldings(at),
      await transactionsAndReporting.getActivities(user),
      await transactionsAndReporting.getReportingCustomRange({
        ...user,
        startDate: "2026-01-01",
        endDate: "2026-02-01",
      }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([410, 410, 410, 410, 410, 410]);
    expect(answers[0]?.data).toEqual({ detail: "This endpoint is no longer available for your account." });
  });

  test("an unknown account, and one of another user, are 404 with code 1011", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0000");
    const { accountInformation, connections } = sdk(sim.url);
    const answers = [
      await accountInformation.getUserAccountBalance({ ...user, accountId: "acct-9999" }),
      await accountInformation.getUserAccountBalance({ ...user, accountId: "acct-0002" }),
      await connections.detailBrokerageAuthorization({ ...user, authorizationId: "conn-0001" }),
    ];
    for (const { status, data } of answers) {
      expect(status).toBe(404);
      expect(data).toMatchObject({ status_code: 404, code: "1011" });
    }
  });

  test("the SDK's own error class carries what the simulator answered", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0000");
    const strict = sdk(sim.url);
    const call = strict.accountInformation.getUserAccountBalance(
      { ...user, accountId: "acct-9999" },
      { validateStatus: (status) => status < 300 },
    );
    await expect(call).rejects.toBeInstanceOf(SnaptradeError);
    await expect(call).rejects.toMatchObject({ status: 404, responseBody: { code: "1011" } });
  });
});

describe("orders", () => {
  test("days defaults to 30 and reaches 90; state picks open or executed ones", async () => {
    const sim = await simulator({ clock: steppedClock().clock });
    const at = { ...ownerOf(sim, "acct-0000"), accountId: "acct-0000" };
    const { accountInformation } = sdk(sim.url);
    const count = async (query: object) =>
      (await accountInformation.getUserAccountOrders({ ...at, ...query })).data.length;
    expect(await count({})).toBe(5);
    expect(await count({ days: 90 })).toBe(6);
    expect(await count({ days: 2 })).toBe(2);
    expect(await count({ state: "open" })).toBe(1);
    expect(await count({ state: "executed", days: 90 })).toBe(4);
  });

  test("a multi-leg order is one record a leg under one brokerage_order_id", async () => {
    const sim = await simulator();
    const at = { ...ownerOf(sim, "acct-0000"), accountId: "acct-0000" };
    const { data } = await sdk(sim.url).accountInformation.getUserAccountOrders(at);
    const legs = data.filter(({ option_symbol }) => option_symbol !== null);
    expect(legs.map(({ action }) => action)).toEqual(["BUY_TO_OPEN", "SELL_TO_OPEN"]);
    expect(new Set(legs.map(({ brokerage_order_id }) => brokerage_order_id)).size).toBe(1);
  });
});

describe("activities", () => {
  const accountId = "acct-0003";

  test("a history of 2300 comes in pages of at most 1000, newest first, none twice", async () => {
    const sim = await simulator();
    const at = { ...ownerOf(sim, accountId), accountId };
    const { accountInformation } = sdk(sim.url);
    const page = async (offset: number) =>
      (await accountInformation.getAccountActivities({ ...at, offset, limit: 5000 })).data;
    const pages = [await page(0), await page(1000), await page(2000), await page(3000)];
    expect(pages.map(({ data }) => data?.length)).toEqual([1000, 1000, 300, 0]);
    expect(pages.map(({ pagination }) => pagination)).toEqual(
      [0, 1000, 2000, 3000].map((offset) => ({ offset, limit: 1000, total: 2300 })),
    );
    const all = pages.flatMap(({ data = [] }) => data);
    expect(new Set(all.map(({ id }) => id)).size).toBe(2300);
    const dates = all.map(({ trade_date }) => String(trade_date));
    expect(dates).toEqual([...dates].sort().reverse());
  });

  test("dates are inclusive on both sides, and nothing is dated today", async () => {
    const sim = await simulator({ clock: steppedClock().clock });
    const at = { ...ownerOf(sim, accountId), accountId };
    const { accountInformation } = sdk(sim.url);
    const between = async (startDate: string, endDate: string) =>
      (await accountInformation.getAccountActivities({ ...at, startDate, endDate })).data.data ?? [];
    const days = (await between("2026-11-20", "2026-11-22")).map(({ trade_date }) => trade_date?.slice(0, 10));
    expect(days).toHaveLength(9);
    expect(new Set(days)).toEqual(new Set(["2026-11-22", "2026-11-21", "2026-11-20"]));
    expect(await between("2026-11-29", "2026-11-30")).toEqual([]);
  });

  test("an activity without a trade date comes last and passes every date filter", async () => {
    const sim = await simulator();
    const at = { ...ownerOf(sim, "acct-0004"), accountId: "acct-0004" };
    const { data } = await sdk(sim.url).accountInformation.getAccountActivities({ ...at, startDate: "2026-11-27" });
    expect(data.data?.at(-1)?.trade_date).toBeNull();
  });

  test("types can be picked; a limit or date that is none is refused", async () => {
    const sim = await simulator();
    const at = { ...ownerOf(sim, accountId), accountId };
    const { accountInformation } = sdk(sim.url);
    const picked = await accountInformation.getAccountActivities({ ...at, type: "FEE,INTEREST" });
    expect(new Set(picked.data.data?.map(({ type }) => type))).toEqual(new Set(["FEE", "INTEREST"]));
    const refused = [
      await accountInformation.getAccountActivities({ ...at, limit: -1 }),
      await accountInformation.getAccountActivities({ ...at, startDate: "yesterday" }),
    ];
    expect(refused.map(({ status }) => status)).toEqual([400, 400]);
  });
});

describe("a manual refresh", () => {
  test("is refused with the connection's own 429 when repeated too soon, without touching the rate limit's", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock });
    const at = { ...ownerOf(sim, "acct-0000"), authorizationId: "conn-0000" };
    const { connections } = sdk(sim.url);
    expect((await connections.refreshBrokerageAuthorization(at)).status).toBe(200);
    const again = await connections.refreshBrokerageAuthorization(at);
    expect([again.status, again.data]).toEqual([429, expect.objectContaining({ code: "throttled" })]);
    expect(Number(again.headers["x-ratelimit-remaining"])).toBeGreaterThan(0);
    step(60_000);
    expect((await connections.refreshBrokerageAuthorization(at)).status).toBe(200);
  });

  test("is 402 on a disabled connection and 403 on a real-time one", async () => {
    const sim = await simulator({ accounts: 20 });
    const { connections } = sdk(sim.url);
    await control(sim, "PUT", "accounts/acct-0000", { disabled: true });
    const disabled = await connections.refreshBrokerageAuthorization({
      ...ownerOf(sim, "acct-0000"),
      authorizationId: "conn-0000",
    });
    expect([disabled.status, disabled.data]).toEqual([402, expect.objectContaining({ code: 3003 })]);
    const realtime = await connections.refreshBrokerageAuthorization({
      ...ownerOf(sim, "acct-0018"),
      authorizationId: "conn-0009",
    });
    expect([realtime.status, realtime.data]).toEqual([403, expect.objectContaining({ default_code: 1141 })]);
  });
});

test("reads of a disabled connection return the cached state, and its connection says so", async () => {
  const sim = await simulator({ clock: () => NOON });
  const user = ownerOf(sim, "acct-0001");
  const at = { ...user, accountId: "acct-0001" };
  const { accountInformation, connections } = sdk(sim.url);
  const before = await accountInformation.getAllAccountPositions(at);
  await control(sim, "PUT", "accounts/acct-0000", { disabled: true });
  const after = await accountInformation.getAllAccountPositions(at);
  expect([after.status, after.data]).toEqual([200, before.data]);
  expect((await connections.listBrokerageAuthorizations(user)).data).toMatchObject([
    { id: "conn-0000", disabled: true, disabled_date: "2026-11-29T12:00:00.000Z" },
  ]);
  await control(sim, "PUT", "accounts/acct-0001", { disabled: false });
  expect((await connections.listBrokerageAuthorizations(user)).data).toMatchObject([{ disabled: false }]);
  expect(asList(sim.account("acct-0001")?.positions).length).toBeGreaterThan(3);
});
