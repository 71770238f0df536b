import { afterAll, beforeAll, expect, test } from "vitest";
import { RACE_POINTS } from "@/lib/service";
import { CRASH_ROWS } from "@/tests/support/crash-rows";
import { type CrashWorld, startCrashWorld } from "@/tests/support/crash-world";
import { proveRecovery, type Recovery, recoveryTable } from "@/tests/support/prove-recovery";

/** I8, whole: the process dies by SIGKILL at every race point there is, over real Postgres, real Redis and QStash. */
let world: CrashWorld;
const recoveries: Recovery[] = [];

beforeAll(async () => {
  world = await startCrashWorld({ accounts: 80 });
}, 120_000);
afterAll(async () => {
  process.stdout.write(`\n${recoveryTable(recoveries)}\n\n`);
  await world.close();
});

const everyWay = RACE_POINTS.flatMap((point) =>
  (CRASH_ROWS[point] ?? []).map((row) => ({ point, flow: row.flow, row })),
);

test.each(RACE_POINTS)("%s has a row of this matrix", (point) => {
  expect(CRASH_ROWS[point]?.length).toBeGreaterThan(0);
});

test.each(everyWay)(
  "killed at $point, $flow: every key is fresh again, and nothing is done twice",
  {
    timeout: 60_000,
  },
  async ({ point, row }) => {
    recoveries.push(await proveRecovery(world, point, row));
  },
);

test("after all of it every account is as SnapTrade has it, no job is open or dead, and no event is unfinished", async () => {
  const { sql, stack } = world;
  expect(await world.differences(stack.snaptrade.accounts().map(({ accountId }) => accountId))).toEqual([]);
  expect(
    await sql`select work_type, account_id, status from snaptrade_sync_jobs where status in ('queued', 'running', 'dead')`,
  ).toEqual([]);
  expect(await sql`select webhook_id from snaptrade_webhook_events where finished_at is null`).toEqual([]);
  expect(stack.snaptrade.state().count429).toBe(0);
});
