import fc from "fast-check";
import { type SyncKey, WORK_TYPES } from "@/lib/domain";
import type { Fiber, TurnEnd } from "@/tests/histories/fibers";
import type { UpstreamFault } from "@/tests/histories/upstream";
import { ACCOUNTS, type World } from "@/tests/histories/world";

const MINUTE = 60_000;

/** `turns`: how many calls the new work makes at once; the rest is left for later steps. */
const turns = fc.oneof({ weight: 2, arbitrary: fc.nat(4) }, { weight: 3, arbitrary: fc.constant(100) });
const which = fc.nat(20);
const one = <T extends string>(name: T, rest: Record<string, fc.Arbitrary<unknown>> = {}) =>
  fc.record({ do: fc.constant(name), ...rest });

const EVENTS = {
  holdings: { eventType: "ACCOUNT_HOLDINGS_UPDATED", workTypes: ["holdings"] },
  transactions: { eventType: "ACCOUNT_TRANSACTIONS_UPDATED", workTypes: ["transactions"] },
  available: { eventType: "NEW_ACCOUNT_AVAILABLE", workTypes: WORK_TYPES },
  removed: { eventType: "ACCOUNT_REMOVED", workTypes: [] },
  broken: { eventType: "CONNECTION_BROKEN", workTypes: [] },
  fixed: { eventType: "CONNECTION_FIXED", workTypes: WORK_TYPES },
} as const;
type EventName = keyof typeof EVENTS;

const eventName = fc.oneof(
  { weight: 12, arbitrary: fc.constant<EventName>("holdings") },
  { weight: 6, arbitrary: fc.constant<EventName>("transactions") },
  { weight: 1, arbitrary: fc.constantFrom<EventName>("available", "removed", "broken", "fixed") },
);

/** One thing that happens. Nothing is drawn while a history is played: the same steps are the same history. */
export type Step =
  | { do: "event"; event: EventName; account: number; turns: number }
  | { do: "resend"; which: number; turns: number }
  | { do: "deliver"; which: number; again: boolean; turns: number }
  | { do: "go on"; which: number; turns: number; end: TurnEnd }
  | { do: "crash"; which: number; after: boolean }
  | { do: "pass"; ms: number }
  | { do: "tick"; turns: number }
  | { do: "flush" }
  | { do: "expire"; which: number }
  | { do: "failover"; account: number; workType: number }
  | { do: "lose message"; which: number }
  | { do: "publish fault"; fault: "swallowed" | "doubled" }
  | { do: "provider fault"; account: number; fault: UpstreamFault }
  | { do: "replay"; turns: number }
  | { do: "bulk"; account: number; workType: number; turns: number };

const account = fc.nat(ACCOUNTS.length - 1);
const workType = fc.nat(WORK_TYPES.length - 1);
const end = fc.oneof(
  { weight: 6, arbitrary: fc.constant<TurnEnd>("answered") },
  { weight: 1, arbitrary: fc.constantFrom<TurnEnd>("refused", "lost") },
);
const fault = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<UpstreamFault>("throttled", "account throttled", "busy", "failed") },
  { weight: 1, arbitrary: fc.constantFrom<UpstreamFault>("unauthorized", "gone") },
);

export const step = fc.oneof(
  { weight: 10, arbitrary: one("event", { event: eventName, account, turns }) },
  { weight: 2, arbitrary: one("resend", { which, turns }) },
  { weight: 12, arbitrary: one("deliver", { which, again: fc.boolean(), turns }) },
  { weight: 14, arbitrary: one("go on", { which, turns: fc.nat(6), end }) },
  { weight: 4, arbitrary: one("crash", { which, after: fc.boolean() }) },
  {
    weight: 8,
    arbitrary: one("pass", { ms: fc.constantFrom(50, 1_000, 3_000, 11_000, 31_000, 61_000, 5 * MINUTE, 31 * MINUTE) }),
  },
  { weight: 5, arbitrary: one("tick", { turns }) },
  { weight: 1, arbitrary: one("flush") },
  { weight: 2, arbitrary: one("expire", { which }) },
  { weight: 2, arbitrary: one("failover", { account, workType }) },
  { weight: 2, arbitrary: one("lose message", { which }) },
  { weight: 2, arbitrary: one("publish fault", { fault: fc.constantFrom("swallowed", "doubled") }) },
  { weight: 3, arbitrary: one("provider fault", { account, fault }) },
  { weight: 1, arbitrary: one("replay", { turns }) },
  { weight: 2, arbitrary: one("bulk", { account, workType, turns }) },
) as fc.Arbitrary<Step>;

const pick = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(1, list.length)];

/** Two faults at once: a failover that undoes a deletion, and the failure of the very function that would notice. */
function isBeyondThePromise(world: World, fiber: Fiber | undefined): boolean {
  return world.rolledBack && fiber?.name === "verify";
}

function keyOf(step: { account: number; workType: number }): SyncKey {
  return { accountId: pick(ACCOUNTS, step.account) ?? "", workType: pick(WORK_TYPES, step.workType) ?? "holdings" };
}

async function goOn(fiber: Fiber, calls: number): Promise<void> {
  for (let i = 0; i < calls && fiber.next !== undefined; i += 1) await fiber.go();
}

export async function play(world: World, step: Step): Promise<void> {
  switch (step.do) {
    case "event": {
      const { eventType, workTypes } = EVENTS[step.event];
      const accountId = pick(ACCOUNTS, step.account) ?? "";
      const accounts = eventType === "CONNECTION_FIXED" ? ACCOUNTS : [accountId];
      for (const type of workTypes) for (const changed of accounts) world.upstream.change(type, changed);
      const webhookId = `event-${world.posted.length}`;
      return goOn(await world.post({ webhookId, eventType, accountId }, workTypes, accounts), step.turns);
    }
    case "resend": {
      const posted = pick(world.posted, step.which);
      return posted && goOn(await world.repeat(posted), step.turns);
    }
    case "deliver": {
      const entry = pick(world.queue.due(), step.which);
      if (entry === undefined) return;
      if (step.again && step.which % 3 === 0) world.queue.waiting.push({ ...entry });
      return goOn(await world.deliver(entry), step.turns);
    }
    case "go on": {
      const fiber = pick(world.busy, step.which);
      await fiber?.go(isBeyondThePromise(world, fiber) ? "answered" : step.end);
      return fiber && goOn(fiber, step.turns);
    }
    case "crash": {
      const fiber = pick(world.busy, step.which);
      if (!isBeyondThePromise(world, fiber)) await fiber?.crash(step.after);
      return;
    }
    case "pass":
      return world.pass(step.ms);
    case "tick":
      return goOn(await world.tick(), step.turns);
    case "flush":
      return world.flush();
    case "expire": {
      const key = pick(world.claims(), step.which);
      return key === undefined ? undefined : world.expire(key);
    }
    case "failover":
      return world.failover(keyOf(step));
    case "lose message": {
      const entry = pick(world.queue.waiting, step.which);
      if (entry !== undefined) world.queue.take(entry);
      return;
    }
    case "publish fault":
      return world.queue.failNext(step.fault);
    case "provider fault":
      return world.upstream.fail(pick(ACCOUNTS, step.account) ?? "", step.fault);
    case "replay":
      return goOn(await world.replay(), step.turns);
    case "bulk":
      return goOn(await world.bulk(keyOf(step)), step.turns);
  }
}

/** The longest that everything may take to come to rest once nothing goes wrong any more, in steps of STEP_MS. */
const REST_STEPS = 60;
/** A little over a third of a lease and of the cron's minute: no time falls on a limit. */
const STEP_MS = 20_500;

/** Faults stop, time passes, the cron runs and QStash delivers, until nothing is left to do (I8). Answers the steps. */
export async function heal(world: World): Promise<number> {
  world.queue.mend();
  world.upstream.mend();
  for (const fiber of world.fibers) await goOn(fiber, 1_000);
  for (let steps = 0; steps < REST_STEPS; steps += 1) {
    for (let entry = world.queue.due()[0]; entry !== undefined; entry = world.queue.due()[0]) {
      await goOn(await world.deliver(entry), 1_000);
    }
    if (world.isAtRest()) return steps;
    await world.pass(Math.max(STEP_MS, world.restsUntil() - world.now()));
    if (steps % 3 === 2) await goOn(await world.tick(), 1_000);
  }
  return REST_STEPS;
}
