import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reconcileTick } from "@/tests/integration/service/cron-calls";
import { type Driver, driveService, type Gate } from "@/tests/integration/service/drive-service";
import { storedVersion } from "@/tests/integration/service/stored-holdings";

/** I1 under random histories of one key: whatever comes, crashes, is lost or repeated, the last event's news is stored. */
let driver: Driver;

beforeAll(async () => {
  driver = await driveService({ accounts: 200, env: { SNAPTRADE_JOB_MAX_ATTEMPTS: "1000" } });
});
afterAll(() => driver.app.close());

const INTAKE = ["intake:claimed", "intake:accepted", "intake:settled"] as const;
const RUN = ["run:admitted", "run:begun", "run:unqueued", "run:read", "run:committed", "run:released"] as const;

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("event" as const), hold: fc.option(fc.constantFrom(...INTAKE)) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("crash" as const), at: fc.constantFrom(...INTAKE) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("deliver" as const),
      which: fc.nat(3),
      hold: fc.option(fc.constantFrom(...RUN)),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("release" as const), which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("flush", "expire", "failover", "end lease", "reconcile") }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** One account's world: what is under way, what must be sent again. */
class History {
  readonly account = driver.nextAccount();
  readonly held: Gate[] = [];
  readonly running: Promise<unknown>[] = [];
  readonly refused: string[] = [];
  version = 1;
  #before: unknown = null;
  #now: unknown = null;
  readonly #key = `snaptrade:account:queued:holdings:${this.account}`;

  async play(step: Step): Promise<void> {
    switch (step.do) {
      case "event":
        return this.#hold(step.hold, () => this.#post(randomUUID(), true));
      case "crash":
        driver.failAt(step.at, new Error("killed here by the test"));
        return this.#hold(null, () => this.#post(randomUUID(), true));
      case "deliver": {
        const messages = driver.published.filter(({ body }) => JSON.stringify(body).includes(this.account));
        const message = messages.at(-1 - (step.which % Math.max(1, messages.length)));
        if (message === undefined) return;
        return this.#hold(step.hold, () => driver.asQStash(message.path, JSON.stringify(message.body)));
      }
      case "release":
        this.held.splice(step.which % Math.max(1, this.held.length), 1)[0]?.release();
        return;
      case "flush":
        return driver.stack.redis.flush();
      case "expire":
        await driver.redis("DEL", this.#key);
        return;
      case "failover":
        if (typeof this.#before === "string") await driver.redis("SET", this.#key, this.#before, "EX", 60);
        else await driver.redis("DEL", this.#key);
        return;
      case "end lease":
        await driver.sql`update snaptrade_sync_jobs set lease_until = now() - interval '1 second'
          where account_id = ${this.account} and status = 'running'`;
        return;
      case "reconcile":
        return this.reconcile();
    }
  }

  /** What a failover would bring back: the value before the last write. */
  async note(): Promise<void> {
    const value = await driver.redis("GET", this.#key);
    if (value !== this.#now) [this.#before, this.#now] = [this.#now, value];
  }

  /** A tick, a minute and a half later. */
  async reconcile(): Promise<void> {
    await driver.sql`update snaptrade_sync_jobs set due_at = due_at - interval '90 seconds',
      published_at = published_at - interval '90 seconds' where account_id = ${this.account} and status = 'queued'`;
    driver.stepRedisClock(90_000);
    await reconcileTick(driver);
  }

  /** Nothing is held or lost any more: everybody ends, what was refused comes again, the crons run. */
  async settle(): Promise<void> {
    for (const gate of this.held) gate.release();
    await Promise.all(this.running);
    for (let tries = 0; tries < 10 && this.refused.length > 0; tries += 1) {
      for (const webhookId of this.refused.splice(0)) await this.#post(webhookId, false);
    }
    await driver.app.settled();
    expect(this.refused).toEqual([]);
    for (let round = 0; round < 12; round += 1) {
      const open = (await driver.jobs(this.account)).filter(
        ({ status }) => status === "queued" || status === "running",
      );
      if (open.length === 0) return;
      await this.play({ do: "end lease" });
      await this.reconcile();
      for (const job of open) await driver.deliver(job.id).catch(() => undefined);
    }
  }

  async #post(webhookId: string, news: boolean): Promise<void> {
    if (news) {
      driver.stack.snaptrade.bumpAccount(this.account, "holdings");
      this.version += 1;
    }
    const { status } = await driver.event("ACCOUNT_HOLDINGS_UPDATED", this.account, { webhookId });
    if (status !== 200) this.refused.push(webhookId);
  }

  /** Starts it, and waits until it is held, or over. */
  async #hold(
    point: (typeof INTAKE)[number] | (typeof RUN)[number] | null,
    start: () => Promise<unknown>,
  ): Promise<void> {
    if (point === null) {
      this.running.push(start());
      await this.running.at(-1);
      return;
    }
    const gate = driver.hold(point);
    this.held.push(gate);
    const running = start();
    this.running.push(running);
    await Promise.race([gate.reached, running.then(gate.release)]);
  }
}

test("whatever happens between an event and its run, the news is stored in the end, and no job is left over", {
  timeout: 240_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 30 }), async (steps) => {
      const history = new History();
      for (const each of steps) {
        await history.play(each);
        await history.note();
      }
      await history.settle();
      const jobs = await driver.jobs(history.account);
      expect(jobs.filter(({ status }) => status === "queued" || status === "running" || status === "dead")).toEqual([]);
      if (history.version > 1) {
        expect(await storedVersion(driver, history.account, history.version)).toEqual({
          positions: true,
          balances: true,
          orders: true,
        });
      }
      const open = await driver.sql`select webhook_id from snaptrade_webhook_events
        where account_id = ${history.account} and finished_at is null`;
      expect(open).toHaveLength(0);
    }),
    { numRuns: 12, interruptAfterTimeLimit: 30_000, endOnFailure: true },
  );
});
