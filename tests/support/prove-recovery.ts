import { expect } from "vitest";
import type { RacePoint } from "@/lib/service";
import { accountsOf, type CrashRow } from "@/tests/support/crash-rows";
import type { CrashWorld } from "@/tests/support/crash-world";

export type Recovery = { point: RacePoint; flow: string; seconds: number; withinS: number; calls: number; by: string };

const TICK_MS = 60_000;
/** Slots are as good as free here, and a publish's delay is whole seconds. */
export const SLOT_MS = 1_000;
const TICK_BEFORE_LEASE_END_S = 50;
const SWEEP_MS = 15 * 60_000;
const SNAPTRADE_RETRY_MS = 30 * 60_000;

/**
 * I8, at one race point: the process is killed there, another one takes over, time goes on from one thing that is due to the
 * next (a delivery, a tick, SnapTrade's retry of what got no 200), and within the bound everything that SnapTrade has of the
 * accounts is stored, by exactly the calls and jobs that it takes.
 */
export async function proveRecovery(world: CrashWorld, point: RacePoint, row: CrashRow): Promise<Recovery> {
  const accounts = accountsOf(world, row);
  const [account = ""] = accounts;
  const before = { posted: world.posted.length, calls: world.callsOf(accounts), jobs: await world.jobs(accounts) };
  await row.prepare?.(world, account, accounts);
  await world.crash(point, row.nth ?? 1, () => row.trigger(world, account));
  await row.after?.(world, account);
  const events = world.posted.slice(before.posted);

  const { freshAfterMs, by } = await untilFreshAndIdle(world, row, accounts, events);
  expect(freshAfterMs, `${point}: ${by}`).toBeLessThanOrEqual(row.withinS * 1000 + SLOT_MS);

  for (const event of events) {
    if (!event.answered) expect(await world.resend(event)).toMatchObject({ outcome: "duplicate" });
  }
  await world.quiet();
  const jobs = (await world.jobs(accounts)).slice(before.jobs.length);
  const calls = world.callsOf(accounts) - before.calls;
  const done = Array.from({ length: row.jobs ?? 1 }, () => "done");
  expect(
    jobs.map(({ status }) => status),
    `${point}: ${by}`,
  ).toEqual(done);
  expect(calls, `${point}: ${by}`).toBeGreaterThanOrEqual(row.calls);
  expect(calls, `${point}: ${by}`).toBeLessThanOrEqual(row.callsAtMost ?? row.calls);
  const webhookIds = events.map(({ fields }) => String(fields.webhookId));
  const rows = await world.sql<{ webhook_id: string; open: boolean }[]>`
    select webhook_id, finished_at is null as open from snaptrade_webhook_events where webhook_id = any (${webhookIds})`;
  expect(rows.filter(({ open }) => open)).toEqual([]);
  const stored = rows.map(({ webhook_id }) => webhook_id).sort();
  if (row.rows === false) expect(new Set(stored).size).toBe(stored.length);
  else expect(stored).toEqual(webhookIds.sort());
  return { point, flow: row.flow, seconds: freshAfterMs / 1000, withinS: row.withinS, calls, by };
}

/**
 * Steps time from one thing that is due to the next until the stored data is SnapTrade's and no job is open. How much time
 * was stepped until it was, and what happened meanwhile.
 */
export async function untilFreshAndIdle(
  world: CrashWorld,
  row: Pick<CrashRow, "firstTickS" | "withinS">,
  accounts: string[],
  events: CrashWorld["posted"],
): Promise<{ freshAfterMs: number; by: string }> {
  const crashedAt = world.stepped();
  const since = () => world.stepped() - crashedAt;
  const by: string[] = [];
  let freshAfterMs: number | null = null;
  let tickAt = (row.firstTickS ?? TICK_BEFORE_LEASE_END_S) * 1000;
  let sweepAt = SWEEP_MS;
  let looked = -1;
  for (;;) {
    await world.quiet();
    const { nextDueInMs, deliveries } = world.stack.qstash.state();
    if (freshAfterMs === null && looked !== deliveries.length) {
      looked = deliveries.length;
      if ((await world.differences(accounts)).length === 0) {
        freshAfterMs = since();
        by.push("fresh");
      }
    }
    const open = (await world.jobs(accounts)).filter(({ status }) => status === "queued" || status === "running");
    if (freshAfterMs !== null && open.length === 0 && nextDueInMs === null) return { freshAfterMs, by: by.join(", ") };
    if (since() > row.withinS * 1000 + SWEEP_MS) {
      throw new Error(`Not fresh and idle after ${since()} ms (${by}): ${JSON.stringify(open)}`);
    }

    const dueAt = nextDueInMs === null ? Number.POSITIVE_INFINITY : since() + nextDueInMs + 1;
    const retryAt = events.some(({ answered }) => !answered) ? SNAPTRADE_RETRY_MS : Number.POSITIVE_INFINITY;
    const nextAt = Math.min(dueAt, tickAt, sweepAt, retryAt);
    await world.pass(Math.max(0, nextAt - since()));
    const at = `at ${Math.round(nextAt / 1000)} s`;
    if (nextAt === dueAt) by.push(`QStash ${at}`);
    if (nextAt === tickAt) {
      const { taken, republished, released, listed } = await world.cron("reconcile-snaptrade");
      const did = Object.entries({ taken, republished, released, listed }).filter(([, count]) => count !== 0);
      if (did.length > 0) by.push(`a tick ${at} (${did.map(([what, count]) => `${count} ${what}`).join(", ")})`);
      tickAt += TICK_MS;
    }
    if (nextAt === sweepAt) {
      await world.cron("schedule-stale-snaptrade");
      by.push(`a sweep ${at}`);
      sweepAt += SWEEP_MS;
    }
    if (nextAt === retryAt) {
      for (const event of events) if (!event.answered) await world.resend(event);
      by.push(`SnapTrade's retry ${at}`);
    }
  }
}

/** One line a point, for people. */
export function recoveryTable(recoveries: readonly Recovery[]): string {
  const lines = recoveries.map(({ point, flow, seconds, withinS, calls, by }) =>
    [
      point.padEnd(27),
      flow.padEnd(42),
      `${Math.round(seconds)} s`.padStart(7),
      `${withinS} s`.padStart(7),
      String(calls).padStart(5),
      ` ${by}`,
    ].join(" "),
  );
  const head = ["killed at".padEnd(27), "while under way".padEnd(42), "  fresh", "  bound", "calls", " by"].join(" ");
  return [head, ...lines].join("\n");
}
