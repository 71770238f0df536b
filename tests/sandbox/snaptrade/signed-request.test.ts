import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { CLIENT_ID, CONSUMER_KEY, ownerOf, sdk, simulator } from "./simulator";

describe("a signed request", () => {
  test("is refused with 401 code 1076 under a wrong consumer key or client id", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0000");
    for (const key of [{ consumerKey: `${CONSUMER_KEY}x` }, { clientId: "OTHERCLIENT" }]) {
      const { status, data } = await sdk(sim.url, key).accountInformation.listUserAccounts(user);
      expect(status).toBe(401);
      expect(data).toMatchObject({ status_code: 401, code: "1076" });
    }
  });

  test("is refused with 401 code 0000 for an unknown user, a wrong secret, or the secret of another user", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0000");
    const other = ownerOf(sim, "acct-0002");
    const { accountInformation } = sdk(sim.url);
    for (const wrong of [
      { userId: "user-9999", userSecret: user.userSecret },
      { userId: user.userId, userSecret: "guess" },
      { userId: user.userId, userSecret: other.userSecret },
    ]) {
      const { status, data } = await accountInformation.listUserAccounts(wrong);
      expect(status).toBe(401);
      expect(data).toMatchObject({ status_code: 401, code: "0000" });
    }
  });

  test("is signed with the encoded consumer key, so a key with characters outside URIs is accepted", async () => {
    const consumerKey = 'ключ "with" spaces';
    const sim = await simulator({ consumerKey });
    const { status } = await sdk(sim.url, { consumerKey }).accountInformation.listUserAccounts(
      ownerOf(sim, "acct-0000"),
    );
    expect(status).toBe(200);
  });

  test("is refused when its query or path was changed after signing, or when it is not signed", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0000");
    let signed = { url: "", signature: "" };
    await sdk(sim.url).accountInformation.getUserAccountOrders(
      { ...user, accountId: "acct-0000", days: 30 },
      {
        adapter: async (config) => {
          signed = { url: String(config.url), signature: String(config.headers.get("Signature")) };
          return { data: "", status: 200, statusText: "", headers: {}, config };
        },
      },
    );
    const send = async (url: string, headers: Record<string, string>) => (await fetch(url, { headers })).status;
    const { url, signature } = signed;
    expect(await send(url, { Signature: signature })).toBe(200);
    expect(await send(url.replace("days=30", "days=31"), { Signature: signature })).toBe(401);
    expect(await send(url.replace("/orders", "/balances"), { Signature: signature })).toBe(401);
    expect(await send(url.replace(/&timestamp=\d+/, ""), { Signature: signature })).toBe(401);
    expect(await send(url, {})).toBe(401);
  });

  test("is refused without a timestamp, even when that is what was signed", async () => {
    const sim = await simulator();
    const { userId, userSecret } = ownerOf(sim, "acct-0000");
    const send = async (query: string) => {
      const signed = JSON.stringify({ content: null, path: "/accounts", query });
      const signature = createHmac("sha256", CONSUMER_KEY).update(signed).digest("base64");
      return (await fetch(`${sim.url}/accounts?${query}`, { headers: { Signature: signature } })).status;
    };
    const query = `clientId=${CLIENT_ID}&userId=${userId}&userSecret=${userSecret}`;
    expect(await send(`${query}&timestamp=1790000000`)).toBe(200);
    expect(await send(query)).toBe(401);
  });

  test("leaves no trace of the user's secret in the call log", async () => {
    const sim = await simulator();
    const user = ownerOf(sim, "acct-0000");
    await sdk(sim.url).accountInformation.getUserAccountBalance({ ...user, accountId: "acct-0000" });
    const text = await (await fetch(`${sim.url}/_sim/state`)).text();
    expect(text).toContain("/accounts/acct-0000/balances");
    expect(text).not.toContain(user.userSecret);
  });
});
