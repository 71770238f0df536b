import { createServer, type Server } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { signWebhook } from "@/sandbox/snaptrade/sign-webhook";
import {
  asList,
  asObject,
  CONSUMER_KEY,
  control,
  NOON,
  ownerOf,
  rawText,
  sdk,
  simulator,
  steppedClock,
} from "./simulator";

describe("an account's state", () => {
  test("is shown and replaced list by list, with the text of every number kept", async () => {
    const sim = await simulator();
    const before = asObject((await control(sim, "GET", "accounts/acct-0000")).json);
    expect(before).toMatchObject({
      accountId: "acct-0000",
      connectionId: "conn-0000",
      userId: "user-0000",
      disabled: false,
    });

    const balances =
      '[{"currency":{"code":"USD"},"cash":12.50,"buying_power":1e-8},{"currency":{"code":"CAD"},"cash":100.0}]';
    const put = await control(sim, "PUT", "accounts/acct-0000", `{"balances":${balances},"positions":[]}`);
    expect(put.status).toBe(200);
    expect(put.text).toContain(`"balances":${balances}`);
    expect((await control(sim, "GET", "accounts/acct-0000")).text).toContain(`"balances":${balances}`);

    const at = { ...ownerOf(sim, "acct-0000"), accountId: "acct-0000" };
    const { accountInformation } = sdk(sim.url);
    expect((await accountInformation.getUserAccountBalance(at, rawText)).data).toBe(balances);
    expect((await accountInformation.getAllAccountPositions(at)).data.results).toEqual([]);
    expect(asObject((await control(sim, "GET", "accounts/acct-0000")).json).orders).toEqual(before.orders);
  });

  test("can be put back as it was shown", async () => {
    const sim = await simulator({ clock: () => NOON });
    const shown = (await control(sim, "GET", "accounts/acct-0004")).text;
    expect((await control(sim, "PUT", "accounts/acct-0004", shown)).text).toBe(shown);
  });

  test("moves its freshness with new data, unless the body says otherwise", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock });
    step(3_600_000);
    const positions = await control(sim, "PUT", "accounts/acct-0000", { positions: [] });
    expect(positions.json).toMatchObject({
      data_freshness: { as_of: "2026-11-29T13:00:00.000Z" },
      sync_status: { holdings: { last_successful_sync: "2026-11-29 13:00:00.000000+00:00" } },
    });
    const said = await control(sim, "PUT", "accounts/acct-0001", {
      positions: [],
      data_freshness: { as_of: "2026-01-01T00:00:00Z" },
      sync_status: { holdings: { holdings_unavailable: true }, transactions: { last_successful_sync: null } },
    });
    expect(said.json).toMatchObject({
      data_freshness: { as_of: "2026-01-01T00:00:00Z" },
      sync_status: {
        holdings: { holdings_unavailable: true, initial_sync_completed: true },
        transactions: { last_successful_sync: null, initial_sync_completed: true },
      },
    });
  });

  test("sorts activities that are put, newest first", async () => {
    const sim = await simulator();
    const activities = ["2026-01-01", null, "2026-03-01T10:00:00.000Z", "2026-02-01"].map((trade_date, i) => ({
      id: `a-${i}`,
      trade_date,
    }));
    await control(sim, "PUT", "accounts/acct-0000", { activities });
    expect(sim.account("acct-0000")?.activities.map(({ id }) => id)).toEqual(["a-2", "a-3", "a-0", "a-1"]);
  });

  test("of an unknown account is 404 code 1011; a put that names a connection makes it appear there", async () => {
    const sim = await simulator();
    expect(await control(sim, "GET", "accounts/acct-9999")).toMatchObject({ status: 404, json: { code: "1011" } });
    expect(await control(sim, "PUT", "accounts/acct-9999", {})).toMatchObject({ status: 404, json: { code: "1011" } });
    expect((await control(sim, "PUT", "accounts/acct-9999", { connectionId: "conn-0001" })).status).toBe(200);
    const user = ownerOf(sim, "acct-0002");
    const { data } = await sdk(sim.url).accountInformation.listUserAccounts(user);
    expect(data.map(({ id }) => id)).toEqual(["acct-0002", "acct-0003", "acct-9999"]);
  });

  test("is not changed by a body with a mistyped member", async () => {
    const sim = await simulator();
    const { status, json } = await control(sim, "PUT", "accounts/acct-0000", { postions: [] });
    expect(status).toBe(400);
    expect(String(json.error)).toContain("postions");
    expect(sim.account("acct-0000")?.positions.length).toBeGreaterThan(0);
  });
});

describe("a bump", () => {
  test("shows in every part of its work type and in the sync state, and in nothing else", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock });
    const before = sim.account("acct-0000");
    step(1000);
    expect((await control(sim, "POST", "bump", { accountId: "acct-0000", workType: "holdings" })).json).toMatchObject({
      accountId: "acct-0000",
    });
    const holdings = sim.account("acct-0000");
    expect(holdings?.positions).not.toEqual(before?.positions);
    expect(holdings?.balances).not.toEqual(before?.balances);
    expect(holdings?.orders).not.toEqual(before?.orders);
    expect(holdings?.asOf).toBe("2026-11-29T12:00:01.000Z");
    expect(holdings?.activities).toBe(before?.activities);

    sim.bumpAccount("acct-0000", "transactions");
    const transactions = sim.account("acct-0000");
    expect(transactions?.activities).toHaveLength((before?.activities.length ?? 0) + 1);
    expect(transactions?.positions).toBe(holdings?.positions);
    expect(asList(transactions?.activities).filter(({ trade_date }) => String(trade_date) > "2026-11-29")).toEqual([]);
  });

  test("gives each version data of its own, also where there was nothing", async () => {
    const sim = await simulator();
    await control(sim, "PUT", "accounts/acct-0000", { positions: [], balances: [], orders: [], activities: [] });
    const seen = new Set<string>();
    for (let i = 0; i < 4; i += 1) {
      sim.bumpAccount("acct-0000", "holdings");
      sim.bumpAccount("acct-0000", "transactions");
      const account = sim.account("acct-0000");
      seen.add(JSON.stringify([account?.positions, account?.balances]));
      seen.add(JSON.stringify(account?.activities));
    }
    expect(seen.size).toBe(8);
  });

  test("of an unknown account is an error", async () => {
    const sim = await simulator();
    expect(() => sim.bumpAccount("acct-9999", "holdings")).toThrow("acct-9999");
    expect((await control(sim, "POST", "bump", { accountId: "acct-9999", workType: "holdings" })).status).toBe(404);
    expect((await control(sim, "POST", "bump", { accountId: "acct-0000", workType: "orders" })).status).toBe(400);
  });
});

describe("a reset", () => {
  test("forgets calls, windows, faults and limits, and keeps the accounts' data", async () => {
    const sim = await simulator({ rateLimitPerMinute: 1 });
    const at = { ...ownerOf(sim, "acct-0000"), accountId: "acct-0000" };
    const { accountInformation } = sdk(sim.url);
    await control(sim, "PUT", "accounts/acct-0000", { positions: [] });
    await control(sim, "PUT", "limits", { perMinute: 2, accountPerMinute: 1, headers: false });
    await accountInformation.getUserAccountBalance(at);
    await accountInformation.getUserAccountBalance(at);
    await control(sim, "POST", "faults", { match: {}, respond: { status: 500 }, times: 9 });
    expect((await control(sim, "POST", "reset")).status).toBe(200);
    expect(sim.state()).toEqual({ calls: [], count429: 0, maxCallsInWindow: 0 });
    const { status, headers, data } = await accountInformation.getAllAccountPositions(at);
    expect([status, headers["x-ratelimit-limit"], headers["x-ratelimit-account-limit"]]).toEqual([200, "1", undefined]);
    expect(data.results).toEqual([]);
  });
});

test("the state lists calls on arrival, in order, with ISO times, and not those of the control API", async () => {
  const { clock, step } = steppedClock();
  const sim = await simulator({ clock });
  const user = ownerOf(sim, "acct-0000");
  await sdk(sim.url).accountInformation.listUserAccounts(user);
  step(1500);
  await sdk(sim.url).accountInformation.getUserAccountBalance({ ...user, accountId: "acct-0001" });
  await control(sim, "GET", "accounts/acct-0000");
  const { status, json } = await control(sim, "GET", "state");
  expect(status).toBe(200);
  expect(JSON.parse(JSON.stringify(json.calls))).toMatchObject([
    { at: "2026-11-29T12:00:00.000Z", method: "GET", path: "/accounts", account: null },
    { at: "2026-11-29T12:00:01.500Z", method: "GET", path: "/accounts/acct-0001/balances", account: "acct-0001" },
  ]);
});

test("an unknown control path says so", async () => {
  const sim = await simulator();
  expect(await control(sim, "POST", "state")).toMatchObject({ status: 404 });
  expect(await control(sim, "GET", "nothing")).toMatchObject({ status: 404 });
});

describe("an emitted webhook", () => {
  const listeners: Server[] = [];
  afterEach(() => {
    for (const server of listeners.splice(0)) server.close();
  });

  /** Answers 202 to everything and keeps what was posted. */
  async function listener() {
    const posts: { signature: string; body: string }[] = [];
    const server = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      request.on("end", () => {
        posts.push({ signature: String(request.headers.signature), body });
        response.writeHead(202, { "Content-Type": "application/json" }).end('{"outcome":"accepted"}');
      });
    });
    listeners.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no address");
    return { url: `http://127.0.0.1:${address.port}/hook`, posts };
  }

  test("is signed, names the account's owner, and returns the receiver's answer", async () => {
    const { url, posts } = await listener();
    const sim = await simulator({ clock: () => NOON, webhookUrl: url });
    const { status, json } = await control(sim, "POST", "emit", {
      eventType: "ACCOUNT_HOLDINGS_UPDATED",
      accountId: "acct-0003",
    });
    expect(status).toBe(200);
    expect(json.body).toEqual({ outcome: "accepted" });
    expect(String(json.status)).toBe("202");
    const [post] = posts;
    const body: unknown = JSON.parse(post?.body ?? "");
    expect(post?.signature).toBe(signWebhook(post?.body ?? "", CONSUMER_KEY));
    expect(body).toMatchObject({
      webhookId: json.webhookId,
      clientId: "SANDBOXCLIENT",
      eventTimestamp: "2026-11-29T12:00:00.000000+00:00",
      userId: "user-0001",
      eventType: "ACCOUNT_HOLDINGS_UPDATED",
      accountId: "acct-0003",
      brokerageAuthorizationId: "conn-0001",
      details: { positions: { success: true, error: null } },
    });
  });

  test("carries every given field as given, its numbers' text too, and works for accounts that do not exist", async () => {
    const { url, posts } = await listener();
    const sim = await simulator();
    sim.setWebhookUrl(url);
    const { json } = await control(
      sim,
      "POST",
      "emit",
      '{"eventType":"TRADE_DETECTION","accountId":"acct-9999","webhookId":"w-1","userId":"somebody","details":{"lag":5.0}}',
    );
    expect(json.webhookId).toBe("w-1");
    expect(posts[0]?.body).toContain('"details":{"lag":5.0}');
    expect(JSON.parse(posts[0]?.body ?? "")).toMatchObject({ userId: "somebody", webhookId: "w-1" });
    expect(posts[0]?.signature).toBe(signWebhook(posts[0]?.body ?? "", CONSUMER_KEY));
  });

  test("has an id of its own each time", async () => {
    const { url } = await listener();
    const sim = await simulator({ webhookUrl: url });
    const emit = async () => (await control(sim, "POST", "emit", { eventType: "USER_REGISTERED" })).json.webhookId;
    expect(await emit()).not.toBe(await emit());
  });

  test("that cannot be posted says why", async () => {
    const sim = await simulator();
    const body = { eventType: "USER_REGISTERED" };
    expect((await control(sim, "POST", "emit", body)).status).toBe(409);
    sim.setWebhookUrl("http://127.0.0.1:1/nobody");
    expect((await control(sim, "POST", "emit", body)).status).toBe(502);
    expect((await control(sim, "POST", "emit", { accountId: "acct-0000" })).status).toBe(400);
  });
});
