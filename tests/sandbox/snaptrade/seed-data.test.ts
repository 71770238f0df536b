import { isLosslessNumber } from "lossless-json";
import { describe, expect, test } from "vitest";
import { writeWire } from "@/sandbox/snaptrade/wire";
import { asList, asObject, NOON, simulator } from "./simulator";

const clock = () => NOON;

describe("seeded data", () => {
  test("are the same for the same seed and clock, and others for another seed", async () => {
    const [a, b, c] = [
      await simulator({ clock, seed: 7 }),
      await simulator({ clock, seed: 7 }),
      await simulator({ clock, seed: 8 }),
    ];
    expect(a.account("acct-0005")).toEqual(b.account("acct-0005"));
    expect(a.users()).toEqual(b.users());
    expect(a.account("acct-0005")).not.toEqual(c.account("acct-0005"));
    expect(a.users()[0]?.userSecret).not.toBe(c.users()[0]?.userSecret);
  });

  test("do not depend on how many accounts there are", async () => {
    const [few, many] = [await simulator({ clock, accounts: 2 }), await simulator({ clock, accounts: 30 })];
    expect(few.account("acct-0001")).toEqual(many.account("acct-0001"));
    expect(few.users()).toHaveLength(1);
    expect(many.users()).toHaveLength(15);
    expect(many.account("acct-0030")).toBeUndefined();
  });

  test("place two accounts under each connection and user", async () => {
    const sim = await simulator({ accounts: 300 });
    expect(sim.account("acct-0009")).toMatchObject({ connectionId: "conn-0004", userId: "user-0004" });
    expect(sim.account("acct-0117")).toMatchObject({ connectionId: "conn-0058", userId: "user-0058" });
    expect(sim.account("acct-0299")).toMatchObject({ connectionId: "conn-0149", userId: "user-0149" });
  });

  test("have positions of several kinds, each identified, with quantities as decimal strings", async () => {
    const sim = await simulator({ accounts: 40 });
    const kinds = new Set<unknown>();
    for (let i = 0; i < 40; i += 1) {
      const positions = asList(sim.account(`acct-${String(i).padStart(4, "0")}`)?.positions);
      const instruments = positions.map(({ instrument }) => asObject(instrument));
      for (const { kind } of instruments) kinds.add(kind);
      expect(new Set(instruments.map(({ id }) => id)).size).toBe(positions.length);
      for (const { units } of positions) expect(units).toMatch(/^-?\d+(\.\d+)?$/);
      const option = instruments.find(({ kind }) => kind === "option");
      expect(option).toMatchObject({ multiplier: "100", symbol: expect.stringMatching(/^SPOT {2}271217[CP]\d{8}$/) });
      const coin = positions.find(({ instrument }) => asObject(instrument).kind === "crypto");
      expect(coin?.units).toMatch(/^0\.\d{18}$/);
    }
    expect(kinds).toEqual(new Set(["stock", "adr", "etf", "option", "crypto", "mutualfund", "future"]));
  });

  test("hold balances in one to three currencies", async () => {
    const sim = await simulator();
    const codes = ["acct-0000", "acct-0001", "acct-0002"].map((id) => sim.account(id)?.balances.length);
    expect(codes).toEqual([1, 2, 3]);
  });

  test("hold raw numbers that JavaScript would rewrite, and write them as they are", async () => {
    const sim = await simulator({ accounts: 20 });
    const texts: string[] = [];
    for (let i = 0; i < 20; i += 1) {
      const account = sim.account(`acct-${String(i).padStart(4, "0")}`);
      for (const { cash } of account?.balances ?? []) if (isLosslessNumber(cash)) texts.push(cash.value);
    }
    const rewritten = texts.filter((text) => String(Number(text)) !== text);
    expect(rewritten.length).toBeGreaterThan(5);
    expect(writeWire(sim.account("acct-0003")?.activities ?? [])).toMatch(/"fee":1e-8[,}]/);
  });

  test("include two equal trades that differ in their id only", async () => {
    const sim = await simulator();
    const [first, second] = asList(sim.account("acct-0000")?.activities.filter(({ type }) => type === "BUY"));
    expect({ ...first, id: null }).toEqual({ ...second, id: null });
    expect(first?.id).not.toBe(second?.id);
  });

  test("include histories of just over and exactly one page", async () => {
    const sim = await simulator({ accounts: 100 });
    expect(["acct-0003", "acct-0042", "acct-0099"].map((id) => sim.account(id)?.activities.length)).toEqual([
      2300, 1001, 1000,
    ]);
  });
});
