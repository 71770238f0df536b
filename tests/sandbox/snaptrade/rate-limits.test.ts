import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RollingWindow } from "@/sandbox/snaptrade/rolling-window";
import type { RunningSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { control, ownerOf, sdk, simulator, steppedClock } from "./simulator";

function reader(sim: RunningSnapTrade, accountId = "acct-0000") {
  const at = { ...ownerOf(sim, accountId), accountId };
  const { accountInformation } = sdk(sim.url);
  return () => accountInformation.getUserAccountBalance(at);
}

describe("the customer limit", () => {
  test("refuses the call over it with the documented 429, and lets one in when the oldest has left the window", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock, rateLimitPerMinute: 3 });
    const read = reader(sim);
    expect((await read()).headers["x-ratelimit-remaining"]).toBe("2");
    step(20_000);
    await read();
    const third = await read();
    expect(third.headers).toMatchObject({
      "x-ratelimit-limit": "3",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": "40",
    });
    const refused = await read();
    expect(refused.status).toBe(429);
    expect(refused.data).toEqual({
      detail: "Request was throttled. Expected available in 40 seconds.",
      status_code: 429,
      code: "0000",
    });
    expect(refused.headers["retry-after"]).toBeUndefined();
    step(39_999);
    expect((await read()).status).toBe(429);
    step(1);
    expect((await read()).status).toBe(200);
    expect((await read()).status).toBe(429);
  });

  test("does not count refused calls, but lists them", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock, rateLimitPerMinute: 2 });
    const read = reader(sim);
    for (let i = 0; i < 6; i += 1) await read();
    const { calls, count429, maxCallsInWindow } = sim.state();
    expect(calls.map(({ status }) => status)).toEqual([200, 200, 429, 429, 429, 429]);
    expect([count429, maxCallsInWindow]).toEqual([4, 2]);
    step(60_000);
    expect((await read()).status).toBe(200);
  });

  test("counts all users and endpoints together", async () => {
    const sim = await simulator({ clock: steppedClock().clock, rateLimitPerMinute: 2 });
    await reader(sim, "acct-0000")();
    await sdk(sim.url).connections.listBrokerageAuthorizations(ownerOf(sim, "acct-0002"));
    expect((await reader(sim, "acct-0004")()).status).toBe(429);
  });

  test("after it was lowered, says when a call is free again and not when the oldest leaves", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock, rateLimitPerMinute: 10 });
    const read = reader(sim);
    for (let i = 0; i < 3; i += 1) {
      await read();
      step(10_000);
    }
    await control(sim, "PUT", "limits", { perMinute: 2 });
    const { status, headers } = await read();
    expect([status, headers["x-ratelimit-reset"]]).toEqual([429, "40"]);
    step(40_000);
    expect((await read()).status).toBe(200);
  });

  test("scales with the window", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock, rateLimitPerMinute: 1, windowMs: 2000 });
    const read = reader(sim);
    await read();
    expect((await read()).headers["x-ratelimit-reset"]).toBe("2");
    step(2000);
    expect((await read()).status).toBe(200);
  });

  test("reads headers off and Retry-After on from the control API", async () => {
    const sim = await simulator({ clock: steppedClock().clock, rateLimitPerMinute: 1 });
    const read = reader(sim);
    await control(sim, "PUT", "limits", { headers: false });
    expect((await read()).headers).not.toHaveProperty("x-ratelimit-limit");
    await control(sim, "PUT", "limits", { headers: { retryAfter: true } });
    const { status, headers } = await read();
    expect([status, headers["retry-after"], headers["x-ratelimit-limit"]]).toEqual([429, "60", undefined]);
    await control(sim, "PUT", "limits", { headers: true });
    expect((await read()).headers["x-ratelimit-limit"]).toBe("1");
  });
});

describe("the account limit", () => {
  test("is off until it is set, and then refuses that account only, with its own headers", async () => {
    const { clock, step } = steppedClock();
    const sim = await simulator({ clock });
    const read = reader(sim, "acct-0000");
    expect((await read()).headers).not.toHaveProperty("x-ratelimit-account-limit");
    await control(sim, "PUT", "limits", { accountPerMinute: 2 });
    const second = await read();
    expect(second.headers).toMatchObject({
      "x-ratelimit-account-limit": "2",
      "x-ratelimit-account-remaining": "0",
      "x-ratelimit-account-reset": "60",
    });
    const refused = await read();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["x-ratelimit-remaining"])).toBeGreaterThan(0);
    expect((await reader(sim, "acct-0001")()).status).toBe(200);
    step(60_000);
    expect((await read()).status).toBe(200);
  });
});

test("a rolling window counts what a plain recount counts, at every moment", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { minLength: 2500, maxLength: 3000 }), (pauses) => {
      const window = new RollingWindow(100);
      const times: number[] = [];
      let now = 0;
      let most = 0;
      for (const pause of pauses) {
        now += pause;
        window.add(now);
        times.push(now);
        const inside = times.slice(-200).filter((t) => t > now - 100).length;
        expect(inside).toBeLessThan(200);
        expect(window.count(now)).toBe(inside);
        most = Math.max(most, inside);
      }
      expect(window.most).toBe(most);
    }),
    { numRuns: 20 },
  );
});

test("a rolling window stays small after many calls", () => {
  const window = new RollingWindow(60_000);
  for (let now = 0; now < 200_000; now += 1) window.add(now);
  expect(window.count(200_000)).toBe(59_999);
  expect(window.most).toBe(60_000);
  expect(window.count(260_000)).toBe(0);
});
