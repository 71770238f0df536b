import { describe, expect, test } from "vitest";
import type { RunningSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { control, ownerOf, sdk, simulator } from "./simulator";

function api(sim: RunningSnapTrade, accountId = "acct-0000") {
  const at = { ...ownerOf(sim, accountId), accountId };
  const { accountInformation } = sdk(sim.url);
  return {
    balances: () => accountInformation.getUserAccountBalance(at),
    positions: () => accountInformation.getAllAccountPositions(at),
  };
}

const fault = (sim: RunningSnapTrade, body: unknown) => control(sim, "POST", "faults", body);

describe("a fault", () => {
  test("with a status answers it, with that status's usual body, as often as it was asked to", async () => {
    const sim = await simulator();
    const { balances } = api(sim);
    await fault(sim, { match: { path: "balances" }, respond: { status: 503 }, times: 2 });
    const answers = [await balances(), await balances(), await balances()];
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
    expect(answers[0]?.data).toMatchObject({ code: "3002" });
  });

  test("with a text body sends that text, complete or cut; with an object sends JSON", async () => {
    const sim = await simulator();
    const { balances } = api(sim);
    await fault(sim, { match: {}, respond: { status: 502, body: "<html>Bad gateway</html>" } });
    await fault(sim, { match: {}, respond: { body: '[{"cash": 12.' } });
    await fault(sim, { match: {}, respond: { body: "" } });
    await fault(sim, '{"match":{},"respond":{"body":{"cash":12.50}}}');
    const html = await balances();
    expect([html.status, html.data, html.headers["content-type"]]).toEqual([
      502,
      "<html>Bad gateway</html>",
      "text/html",
    ]);
    const cut = await balances();
    expect([cut.status, cut.data]).toEqual([200, '[{"cash": 12.']);
    expect((await balances()).data).toBe("");
    const raw = await fetch(`${sim.url}/_sim/state`);
    expect(raw.status).toBe(200);
    expect((await balances()).data).toEqual({ cash: 12.5 });
  });

  test("with headers only lays them over the usual answer; null takes one away", async () => {
    const sim = await simulator();
    const { balances } = api(sim);
    await fault(sim, { match: {}, respond: { headers: { "x-ratelimit-remaining": "0", "X-RateLimit-Limit": null } } });
    const { status, data, headers } = await balances();
    expect([status, Array.isArray(data), headers["x-ratelimit-remaining"]]).toEqual([200, true, "0"]);
    expect(headers).not.toHaveProperty("x-ratelimit-limit");
  });

  test("with a delay only sends the answer of the moment of arrival, late", async () => {
    const sim = await simulator();
    const { positions } = api(sim);
    const before = (await positions()).data;
    await fault(sim, { match: { path: "positions" }, respond: { delayMs: 200 } });
    const began = Date.now();
    const late = positions();
    await expect.poll(() => sim.state().calls.length).toBe(2);
    expect(sim.state().calls[1]?.status).toBeNull();
    sim.bumpAccount("acct-0000", "holdings");
    expect((await late).data).toEqual(before);
    expect(Date.now() - began).toBeGreaterThanOrEqual(199);
    expect(sim.state().calls[1]?.status).toBe(200);
    expect((await positions()).data).not.toEqual(before);
  });

  test("that drops ends the connection before or in the middle of the answer, and the log says 0", async () => {
    const sim = await simulator();
    const { balances } = api(sim);
    await fault(sim, { match: {}, respond: { drop: true } });
    await expect(balances()).rejects.toMatchObject({ status: undefined });
    await fault(sim, { match: {}, respond: { drop: "half" } });
    await expect(balances()).rejects.toThrow();
    expect(sim.state().calls.map(({ status }) => status)).toEqual([0, 0]);
    expect((await balances()).status).toBe(200);
  });

  test("matches by account, by part of a path, or by a whole path with * and {name}", async () => {
    const sim = await simulator();
    const first = api(sim, "acct-0000");
    const second = api(sim, "acct-0001");
    await fault(sim, { match: { accountId: "acct-0001" }, respond: { status: 500 }, times: 2 });
    await fault(sim, { match: { path: "/accounts/{accountId}/balances" }, respond: { status: 501 } });
    await fault(sim, { match: { path: "/accounts/*/all" }, respond: { status: 502 } });
    await fault(sim, { match: { path: "/accounts/{accountId}" }, respond: { status: 504 } });
    const answers = [
      await second.positions(),
      await second.balances(),
      await first.balances(),
      await first.positions(),
      await first.balances(),
      await second.balances(),
    ];
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 501, 502, 200, 200]);
  });

  test("of 429 counts as refused, and a call over the limit uses up none", async () => {
    const sim = await simulator({ rateLimitPerMinute: 1 });
    const { balances } = api(sim);
    await fault(sim, { match: {}, respond: { status: 429 } });
    expect((await balances()).data).toMatchObject({ code: "0000" });
    await fault(sim, { match: {}, respond: { status: 500 }, times: 1 });
    await fault(sim, { match: {}, respond: { status: 503 }, times: 1 });
    expect((await balances()).status).toBe(500);
    expect((await balances()).status).toBe(429);
    await control(sim, "PUT", "limits", { perMinute: 5 });
    expect((await balances()).status).toBe(503);
    expect(sim.state()).toMatchObject({ count429: 2, maxCallsInWindow: 2 });
  });

  test("that is malformed is refused with the reason", async () => {
    const sim = await simulator();
    const answers = [
      await fault(sim, { match: { url: "x" }, respond: {} }),
      await fault(sim, { match: {}, respond: { status: 99 } }),
      await fault(sim, "{"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400]);
    expect(String(answers[0]?.json.error)).toContain("match");
  });
});

/** The client would give up after 10 s: the limit is below that. */
test("closing does not wait for late answers", async () => {
  const sim = await simulator();
  await fault(sim, { match: {}, respond: { delayMs: 600_000 } });
  const late = api(sim).balances();
  const failed = expect(late).rejects.toThrow();
  await expect.poll(() => sim.state().calls.length).toBe(1);
  await sim.close();
  await failed;
}, 8000);
