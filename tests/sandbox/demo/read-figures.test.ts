import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { WorkType } from "@/lib/domain";
import { readFigures } from "@/sandbox/demo/read-figures";
import { countCallsDue, openKeys } from "@/sandbox/demo/watch-jobs";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

const START = Date.parse("2026-01-01T00:00:00Z");
const at = (second: number) => new Date(START + second * 1000);

describe("the demo's figures", () => {
  let database: LocalDatabase;
  beforeAll(async () => {
    database = await freshDatabase();
    await database.sql`insert into snaptrade_users (user_id) values ('user-0000')`;
    await database.sql`
      insert into snaptrade_accounts (account_id, user_id, detail_read_at)
      values ('acct-0000', 'user-0000', now()), ('acct-0001', 'user-0000', now())`;
  });
  beforeEach(async () => {
    await database.sql`delete from snaptrade_webhook_events`;
    await database.sql`delete from snaptrade_sync_jobs`;
  });
  afterAll(() => database.close());

  const activities = (second: number, status = 200) => ({
    at: at(second).toISOString(),
    method: "GET",
    path: "/accounts/acct-0000/activities",
    account: "acct-0000",
    status,
  });
  const figures = (calls: ReturnType<typeof activities>[] = []) =>
    readFigures(database.sql, ["acct-0000", "acct-0001"], calls);

  async function run(from: number, workType: WorkType = "holdings", reason = "event"): Promise<string> {
    const [job] = await database.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, status, reason, started_at, finished_at)
      values (${workType}, 'acct-0000', 'done', ${reason}, ${at(from)}, ${at(from + 1)}) returning id`;
    return String(job?.id);
  }
  async function event(second: number, jobIds: string[], outcome = "accepted"): Promise<void> {
    await database.sql`
      insert into snaptrade_webhook_events (webhook_id, account_id, outcome, processed, job_ids, received_at)
      values (gen_random_uuid(), 'acct-0000', ${outcome}, ${outcome === "accepted"}, ${jobIds}, ${at(second)})`;
  }

  it("take a run for wasted when no event came since the run before began", async () => {
    const first = await run(10);
    await event(5, [first]);
    const second = await run(20);
    expect(await figures()).toMatchObject({ runs: 2, wastedRuns: 1 });
    await event(11, [second], "coalesced");
    expect(await figures()).toMatchObject({ wastedRuns: 0, staleAccounts: [] });
  });

  it("do not blame a run of the sweep, nor count an event of another key", async () => {
    await run(10, "holdings", "sweep");
    const transactions = await run(10, "transactions");
    expect(await figures()).toMatchObject({ wastedRuns: 1 });
    await event(5, [transactions]);
    expect(await figures()).toMatchObject({ wastedRuns: 0 });
  });

  it("call an account stale whose event came after its last committed run began", async () => {
    const job = await run(10);
    await event(5, [job]);
    expect(await figures()).toMatchObject({ staleAccounts: [] });
    await event(11, [job], "coalesced");
    expect(await figures()).toMatchObject({ staleAccounts: ["acct-0000"] });
  });

  it("call nothing stale, nor lost, that a job still stands for: its run is yet to come", async () => {
    const job = await run(10);
    await event(11, [job], "coalesced");
    await database.sql`
      insert into snaptrade_sync_jobs (work_type, account_id, status, reason)
      values ('holdings', 'acct-0000', 'queued', 'event'), ('transactions', 'acct-0001', 'queued', 'event')`;
    expect(await figures()).toMatchObject({ staleAccounts: [] });
    expect((await openKeys(database.sql)).toSorted()).toEqual(["acct-0000 holdings", "acct-0001 transactions"]);
    // Three for holdings; a page of transactions, and the account, of whose history nothing is known yet.
    expect(await countCallsDue(database.sql)).toBe(5);
  });

  it("need three calls for holdings, the pages for transactions, one more for an account that is new", async () => {
    await run(10);
    await run(20, "transactions");
    const calls = [activities(20.2), activities(20.4, 500), activities(20.6), activities(25)];
    expect(await figures(calls)).toMatchObject({ callsNeeded: 5 });
    expect(await readFigures(database.sql, ["acct-0000"], calls)).toMatchObject({ callsNeeded: 6 });
  });
});
