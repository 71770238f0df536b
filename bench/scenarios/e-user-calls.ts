import type { Scenario, Stage } from "@/bench/scenarios/scenario";
import { demoStorm, FAULT_PATIENCE_MS, numberOf } from "@/bench/scenarios/storms";

const LIMIT = 250;
const SHARES = { before: 0.15, after: 0.4 };
const STEP_AFTER_MS = 90_000;
const LENGTH_MS = 5 * 60_000;
const WINDOW_MS = 60_000;

const USER_ACCOUNTS = 10;

/** Calls for users take a part of the limit, and suddenly much more of it: together with the background's share too much. */
export function userCalls(stormAccounts: number): Scenario {
  const forUsers = (accountId: string) => numberOf(accountId) >= stormAccounts;
  return {
    name: "e",
    title: `the storm for ${stormAccounts} accounts beside user-facing calls: 15 % of the limit, then 40 %`,
    ...{
      accounts: stormAccounts + USER_ACCOUNTS,
      limit: LIMIT,
      patienceMs: FAULT_PATIENCE_MS,
      drains: true,
      isScarce: true,
    },
    ...{ excusedMs: WINDOW_MS, forUsers },
    async play(stage) {
      const { world, replay } = stage;
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      await Promise.all([replay(demoStorm(world, stormAccounts)), callForUsers(stage, forUsers)]);
    },
  };
}

async function callForUsers({ world, wait }: Stage, forUsers: (accountId: string) => boolean): Promise<void> {
  const users = new Map(world.snaptrade.users().map((user) => [user.userId, user]));
  const accounts = world.snaptrade.accounts().filter(({ accountId }) => forUsers(accountId));
  const startMs = world.now();
  const calls: Promise<void>[] = [];
  let share = 0;
  for (let dueMs = startMs, i = 0; dueMs < startMs + LENGTH_MS; i += 1) {
    const wanted = dueMs < startMs + STEP_AFTER_MS ? SHARES.before : SHARES.after;
    if (wanted !== share) {
      if (share !== 0) world.recorder.mark(world.now());
      share = wanted;
      world.recorder.capacity({ fromMs: world.now(), limit: LIMIT, users: share * LIMIT });
    }
    const account = accounts[i % accounts.length];
    const user = users.get(account?.userId ?? "");
    if (account === undefined || user === undefined) throw new Error("The scenario has no accounts for its users.");
    calls.push(world.userCalls.call(user, account.accountId));
    dueMs += WINDOW_MS / (share * LIMIT);
    await wait(Math.max(0, dueMs - world.now()));
  }
  world.recorder.capacity({ fromMs: world.now(), limit: LIMIT, users: 0 });
  await Promise.all(calls);
}
