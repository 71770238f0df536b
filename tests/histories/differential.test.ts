import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createScriptRunner, type ScriptRunner } from "@/lib/guards/redis-scripts";
import { createLogger } from "@/lib/log";
import { createStore, type Store } from "@/lib/store/store";
import { SECRET, USER } from "@/tests/histories/env";
import { amountOf, parametersOf } from "@/tests/histories/hold-histories";
import { mirrorOf } from "@/tests/histories/mirror";
import { rowsInMemory, rowsOf } from "@/tests/histories/rows";
import { heal, play, step } from "@/tests/histories/steps";
import { ACCOUNTS, CONNECTION, World } from "@/tests/histories/world";
import { type LocalStack, startLocalStack } from "@/tests/support/local-stack";

let stack: LocalStack<object>;
let scripts: ScriptRunner;
let store: Store;

beforeAll(async () => {
  stack = await startLocalStack();
  const logger = createLogger({ secrets: [], level: "silent" });
  scripts = createScriptRunner({ url: stack.redis.url, token: stack.redis.token, timeoutMs: 15_000, logger });
  const { sql } = stack.database;
  store = createStore(async (name, request, shape) => {
    const [row] =
      await sql`select ${sql(`public.${name}`)}(${sql.json(JSON.parse(JSON.stringify(request)))}) as answer`;
    return shape.parse(row?.answer);
  });
});
afterAll(() => stack.close());

async function empty(): Promise<void> {
  const { sql } = stack.database;
  await stack.redis.flush();
  // Not truncate, which takes far longer where there are a few rows.
  await sql`delete from snaptrade_sync_jobs`;
  await sql`delete from snaptrade_webhook_events`;
  for (const part of ["balances", "positions", "orders", "transactions", "accounts", "connections", "users"]) {
    await sql`delete from ${sql(`snaptrade_${part}`)}`;
  }
  await sql`insert into snaptrade_users (user_id, secret_ciphertext) values (${USER}, ${SECRET})`;
  await sql`insert into snaptrade_connections (connection_id, user_id) values (${CONNECTION}, ${USER})`;
  for (const account_id of ACCOUNTS) {
    const row = {
      account_id,
      user_id: USER,
      connection_id: CONNECTION,
      detail_read_at: new Date(),
      transactions_ready: true,
    };
    await sql`insert into snaptrade_accounts ${sql(row)}`;
  }
}

test("the parts in memory answer as Postgres and Redis do, call by call, and hold the same at the end", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 60 }), async (steps) => {
      await empty();
      const world = new World({
        startAt: 0,
        clock: Date.now,
        mirror: (memory, itself) =>
          mirrorOf({ memory, world: itself, store, scripts, sql: stack.database.sql, redis: stack.redis }),
      });
      for (const each of steps) {
        await play(world, each);
        expect(world.watch.faults).toEqual([]);
      }
      await heal(world);
      world.watch.atRest();
      expect(world.watch.faults).toEqual([]);
      expect(await rowsOf(stack.database.sql)).toEqual(rowsInMemory(world.postgres));
    }),
    { ...parametersOf(amountOf("TWIN_HISTORIES", 40)), endOnFailure: true },
  );
}, 3_600_000);
