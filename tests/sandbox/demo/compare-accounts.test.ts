import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareAccounts, differingKeys } from "@/sandbox/demo/compare-accounts";
import { type RunningSnapTrade, startSnapTrade } from "@/sandbox/snaptrade/start-snaptrade";
import { seedDatabase } from "@/sandbox/stack/seed-database";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";

/** With them: a history of more than one page, an activity without a date, equal trades, short positions. */
const ACCOUNTS = 12;

describe("the demo's comparison", () => {
  let database: LocalDatabase;
  let snaptrade: RunningSnapTrade;
  const compare = () => compareAccounts(database.sql, snaptrade.accounts());

  beforeAll(async () => {
    database = await freshDatabase();
    const keys = { clientId: "CLIENT", consumerKey: "key" };
    snaptrade = await startSnapTrade({ port: 0, ...keys, accounts: ACCOUNTS, rateLimitPerMinute: 250 });
    await seed();
  });

  afterAll(async () => {
    await snaptrade.close();
    await database.close();
  });

  /** All accounts, or these. */
  async function seed(...ids: string[]): Promise<void> {
    const all = snaptrade.accounts();
    await seedDatabase(database.url, {
      users: snaptrade.users(),
      connections: snaptrade.connections(),
      accounts: ids.length === 0 ? all : all.filter(({ accountId }) => ids.includes(accountId)),
      secretsKey: randomBytes(32),
      fresh: false,
    });
  }

  it("finds nothing where everything is stored, and again after another seed of the same accounts", async () => {
    expect(await compare()).toEqual([]);
    await seed();
    expect(await compare()).toEqual([]);
  });

  it("finds each key whose account has a newer version upstream", async () => {
    snaptrade.bumpAccount("acct-0003", "transactions");
    snaptrade.bumpAccount("acct-0007", "holdings");
    expect(differingKeys(await compare())).toEqual(["acct-0003 transactions", "acct-0007 holdings"]);
    await seed("acct-0003", "acct-0007");
    expect(await compare()).toEqual([]);
  });

  it.each([
    ["a digit of a balance", "update snaptrade_balances set cash = cash + 0.000000001", "holdings"],
    ["a digit of a position", "update snaptrade_positions set units = units + 0.000000000000000001", "holdings"],
    ["a field of an order", `update snaptrade_orders set raw = '{"status":"EXECUTED"}'`, "holdings"],
    ["a lost transaction", "delete from snaptrade_transactions", "transactions"],
    ["a day of a transaction", "update snaptrade_transactions set trade_date = trade_date + 1", "transactions"],
  ])("finds %s that is not as upstream", async (_, change, workType) => {
    const one = change.startsWith("delete")
      ? "where ctid = (select min(ctid) from snaptrade_transactions where account_id = 'acct-0002')"
      : "where account_id = 'acct-0002'";
    await database.sql.unsafe(`${change} ${one}`);
    expect(differingKeys(await compare())).toEqual([`acct-0002 ${workType}`]);
    await seed("acct-0002");
  });

  it("finds a row that upstream does not have", async () => {
    await database.sql`
      insert into snaptrade_transactions (account_id, activity_id, fingerprint, occurrence, raw)
      values ('acct-0004', 'nobody', 'nobody', 1, '{"id":"nobody"}')`;
    expect(differingKeys(await compare())).toEqual(["acct-0004 transactions"]);
    await seed("acct-0004");
  });
});
