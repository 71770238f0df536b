import fc from "fast-check";
import { expect, test } from "vitest";
import type { RunningSnapTrade, SimState } from "@/sandbox/snaptrade/start-snaptrade";
import { asObject, control, ownerOf, sdk, simulator, steppedClock } from "./simulator";

/** The provider's limits as its documentation has them, said a second time: what a reader of the log counts. */
const WINDOW_MS = 60_000;
const ACCOUNTS = ["acct-0000", "acct-0001", "acct-0002"];

type Limits = { perMinute: number; accountPerMinute: number | null };
/** As the log lists it, with the limits of its moment, and whether it was refused for being over one of them. */
type Call = { at: number; account: string | null; counts: boolean; limits: Limits; refused: boolean };

const account = fc.constantFrom(...ACCOUNTS);
const call = fc.record({
  kind: fc.constantFrom("balances", "positions", "list", "refresh", "wrong key"),
  account,
});
/** The edges of a window are met exactly, and often several calls stand in one millisecond. */
const pause = fc.oneof(
  { weight: 5, arbitrary: fc.constant(0) },
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 30 }).map((halves) => halves * 500) },
  { weight: 2, arbitrary: fc.constantFrom(1, 499, 9_999, 49_999, 50_000, 59_999, 60_000, 60_001) },
  { weight: 2, arbitrary: fc.nat(3_000) },
);
const limits = fc.record({
  perMinute: fc.integer({ min: 0, max: 25 }),
  accountPerMinute: fc.option(fc.integer({ min: 1, max: 8 })),
});
const fault = fc.record({
  account,
  respond: fc.constantFrom<object>(
    { status: 503 },
    { drop: "half" },
    // A limit that shows in no header, and that the provider counts elsewhere.
    { status: 429, body: '{"code":"hidden"}' },
  ),
});
const move = fc.oneof(
  { weight: 20, arbitrary: fc.record({ calls: fc.array(call, { minLength: 1, maxLength: 5 }), pause }) },
  { weight: 1, arbitrary: fc.record({ limits }) },
  { weight: 2, arbitrary: fc.record({ fault }) },
);

/** One call through the SDK: the code of its answer, or null where the answer never came whole. */
async function codeOf(
  sim: RunningSnapTrade,
  clients: Record<"ours" | "another", ReturnType<typeof sdk>>,
  { kind, account: accountId }: { kind: string; account: string },
) {
  const at = { ...ownerOf(sim, accountId), accountId };
  const client = kind === "wrong key" ? clients.another : clients.ours;
  const authorizationId = sim.account(accountId)?.connectionId ?? "";
  const sent: Promise<{ status: number; data: unknown }> =
    kind === "list"
      ? client.accountInformation.listUserAccounts(at)
      : kind === "refresh"
        ? client.connections.refreshBrokerageAuthorization({ ...at, authorizationId })
        : kind === "positions"
          ? client.accountInformation.getAllAccountPositions(at)
          : client.accountInformation.getUserAccountBalance(at);
  const answer = await sent.catch(() => null);
  return answer?.status === 429 ? asObject(answer.data).code : null;
}

/** The log's calls in their order; `seen` is what the driver knows of each. */
function listed({ calls }: SimState, seen: { limits: Limits; refused: boolean }[]): Call[] {
  expect(calls).toHaveLength(seen.length);
  return calls.map(({ at, account: of, status }, i) => {
    const known = seen[i];
    if (known === undefined) throw new Error("A call that nobody made");
    return { at: Date.parse(at), account: of, counts: status !== 429, ...known };
  });
}

/** Of these calls, those that count in the window which ends at that moment: all that were answered other than 429. */
function inWindow(calls: Call[], end: number): Call[] {
  return calls.filter(({ at, counts }) => counts && at > end - WINDOW_MS);
}

/** Whether a call is over a limit after those before it: all of them for the client, those of its account for that. */
function isOver({ at, account: of, limits: now }: Call, before: Call[]): boolean {
  const counted = inWindow(before, at);
  if (counted.length >= now.perMinute) return true;
  if (of === null || now.accountPerMinute === null) return false;
  return counted.filter((other) => other.account === of).length >= now.accountPerMinute;
}

test("whatever calls come, and whatever the limits become, every answer and the largest window are those of a plain recount of the log", async () => {
  const total = { calls: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 120, maxLength: 180 }), async (moves) => {
      const { clock, step } = steppedClock();
      let now: Limits = { perMinute: 12, accountPerMinute: null };
      const sim = await simulator({ clock, rateLimitPerMinute: now.perMinute });
      const clients = { ours: sdk(sim.url), another: sdk(sim.url, { consumerKey: "another" }) };
      const seen: { limits: Limits; refused: boolean }[] = [];
      for (const each of moves) {
        if ("limits" in each) {
          now = each.limits;
          await control(sim, "PUT", "limits", now);
        } else if ("fault" in each) {
          const { account: accountId, respond } = each.fault;
          await control(sim, "POST", "faults", { match: { accountId }, respond, times: 1 });
        } else {
          for (const one of each.calls)
            seen.push({ limits: now, refused: (await codeOf(sim, clients, one)) === "0000" });
          step(each.pause);
        }
      }
      await expect.poll(() => sim.state().calls.some(({ status }) => status === null)).toBe(false);
      const state = sim.state();
      const calls = listed(state, seen);
      expect(calls.map(({ refused }) => refused)).toEqual(calls.map((each, i) => isOver(each, calls.slice(0, i))));
      const windows = calls.map(({ at }, i) => inWindow(calls.slice(0, i + 1), at).length);
      expect(state.maxCallsInWindow).toBe(Math.max(0, ...windows));
      expect(state.count429).toBe(calls.filter(({ counts }) => !counts).length);
      total.calls += calls.length;
      total.refused += calls.filter(({ refused }) => refused).length;
    }),
    { numRuns: 8, endOnFailure: true },
  );
  // Both answers came often.
  expect(total.refused).toBeGreaterThan(total.calls / 10);
  expect(total.refused).toBeLessThan((total.calls * 9) / 10);
}, 120_000);
