import { Redis } from "@upstash/redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseEnv } from "@/lib/env";
import { freshDatabase } from "@/tests/support/local-database";
import { type LocalStack, startLocalStack } from "@/tests/support/local-stack";

describe("a fresh database", () => {
  it("has every migration applied and shows nothing of another fresh database", async () => {
    const [one, two] = await Promise.all([freshDatabase(), freshDatabase()]);
    await one.sql`insert into snaptrade_users (user_id) values ('user-of-one')`;

    expect(await one.sql`select user_id from snaptrade_users`).toHaveLength(1);
    expect(await two.sql`select user_id from snaptrade_users`).toHaveLength(0);
    await Promise.all([one.close(), two.close()]);
  });

  it("is gone after close, even with a client still connected", async () => {
    const database = await freshDatabase();
    await database.sql`select 1`;
    await database.close();

    const other = await freshDatabase();
    const name = new URL(database.url).pathname.slice(1);
    expect(await other.sql`select from pg_database where datname = ${name}`).toHaveLength(0);
    await other.close();
  });
});

describe("a local stack", () => {
  let one: LocalStack<{ qstash: true; snaptrade: { accounts: 4 } }>;
  let two: LocalStack<object>;

  beforeAll(async () => {
    [one, two] = await Promise.all([startLocalStack({ qstash: true, snaptrade: { accounts: 4 } }), startLocalStack()]);
  });
  afterAll(() => Promise.all([one.close(), two.close()]));

  it("shares no Redis key with another stack", async () => {
    const [first, second] = [one, two].map(({ redis }) => new Redis({ url: redis.url, token: redis.token }));
    await first?.set("key", "of one");
    expect(await first?.get("key")).toBe("of one");
    expect(await second?.get("key")).toBeNull();
    await second?.flushall();
    expect(await first?.get("key")).toBe("of one");
  });

  it("gives an environment that the service accepts", () => {
    expect(parseEnv({ ...one.env, NODE_ENV: "production" })).toMatchObject({ kind: "ok" });
    expect(one.env.QSTASH_URL).toBe(one.qstash.url);
    expect(one.env.SNAPTRADE_API_URL).toBe(one.snaptrade.url);
  });

  it("starts QStash and SnapTrade only on demand", () => {
    expect(one.snaptrade.account("acct-0003")).toBeDefined();
    expect(two.qstash).toBeUndefined();
    expect(two.snaptrade).toBeUndefined();
  });
});
