import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { addUserCommand } from "@/lib/cli/commands/add-user";
import { AWAY } from "@/lib/guards/redis-scripts";
import { decryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";
import { operator, patient } from "@/tests/integration/cli/operator";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

const MINUTE = 60_000;
const NONE = { calls: 0, slotAt: 0 };
const AUTH_USER = "6f1f5c1e-2f5b-4a51-9d2e-3a6c1f0e8b77";

/** A worker of a busy machine may be put off once by QStash, for ten seconds. */
const RUNS = { timeout: 45_000 };
vi.setConfig({ testTimeout: 60_000 });

let app: ServedApp<{ qstash: true; snaptrade: { accounts: number; rateLimitPerMinute: number } }>;
let service: Service;

beforeAll(async () => {
  app = await serveApp({ qstash: true, snaptrade: { accounts: 8, rateLimitPerMinute: 6000 } });
  service = patient(app.service);
});
afterAll(() => app.close());

function seeded(n: number): { userId: string; userSecret: string } {
  const user = app.stack.snaptrade.users()[n];
  if (user === undefined) throw new Error(`The simulator has no user ${n}`);
  return user;
}

/** Tables in which a text stands in any column. */
async function tablesWith(text: string): Promise<string[]> {
  const { sql } = app.stack.database;
  const tables = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'`;
  expect(tables.length).toBeGreaterThan(8);
  const found: string[] = [];
  for (const { name } of tables) {
    const [row] = await sql.unsafe(`select count(*)::int as n from ${name} t where strpos(t::text, $1) > 0`, [text]);
    if (row?.n > 0) found.push(name);
  }
  return found;
}

const storedUser = async (userId: string) => {
  const [row] = await app.stack.database.sql`select * from snaptrade_users where user_id = ${userId}`;
  return row;
};

const openJobs = async () => {
  const [row] = await app.stack.database
    .sql`select count(*)::int as n from snaptrade_sync_jobs where status in ('queued', 'running')`;
  return row?.n;
};

test("a user who is added has its connections and accounts stored and read, and its waiting event runs", async () => {
  const user = seeded(0);
  const event = {
    eventType: "ACCOUNT_HOLDINGS_UPDATED",
    accountId: "acct-0000",
    brokerageAuthorizationId: "conn-0000",
  };
  expect(await app.post(event)).toMatchObject({ status: 200, outcome: "waiting" });

  // A run of the first jobs would hold its key for a moment, and what waits for a held key is left to the next tick.
  app.stack.qstash.faults.set({ stall: true });
  const report = await addUserCommand(operator(service), { ...user, authUserId: AUTH_USER }, MINUTE);
  app.stack.qstash.faults.set({});
  expect(report).toMatchObject({
    exit: 0,
    document: { userId: "user-0000", created: true, connections: 1, accounts: 2, jobs: 4, left: 0, released: 1 },
    text: expect.stringContaining("1 connection, 2 accounts; 4 first jobs queued, 1 waiting event released."),
  });
  const { sql } = app.stack.database;
  expect(await sql`select connection_id, user_id, disabled from snaptrade_connections`).toEqual([
    { connection_id: "conn-0000", user_id: "user-0000", disabled: false },
  ]);
  expect(await sql`select account_id from snaptrade_accounts order by 1`).toEqual([
    { account_id: "acct-0000" },
    { account_id: "acct-0001" },
  ]);
  expect((await storedUser("user-0000"))?.auth_user_id).toBe(AUTH_USER);
  await expect.poll(openJobs, RUNS).toBe(0);
  const [waited] = await sql`select outcome, finished_at from snaptrade_webhook_events`;
  expect(waited).toMatchObject({ outcome: expect.stringMatching(/accepted|coalesced/), finished_at: expect.any(Date) });
  expect(await sql`select distinct account_id from snaptrade_positions order by 1`).toHaveLength(2);
});

test("a user secret stands in the database encrypted only, and in no log line", async () => {
  const user = seeded(1);
  await addUserCommand(operator(service), { ...user, authUserId: undefined }, MINUTE);
  await expect.poll(openJobs, RUNS).toBe(0);
  const ciphertext = String((await storedUser("user-0001"))?.secret_ciphertext);
  expect(decryptSecret(ciphertext, service.env.snaptrade.secretsKeys, "user-0001")).toBe(user.userSecret);
  expect(await tablesWith(ciphertext)).toEqual(["snaptrade_users"]);
  expect(await tablesWith(user.userSecret)).toEqual([]);
  expect(JSON.stringify(app.log)).not.toContain(user.userSecret);
});

test("a known user keeps the secret that works until SnapTrade has accepted the new one", async () => {
  const before = await storedUser("user-0001");
  const userSecret = "another-secret-that-is-not-this-users";
  const refused = await addUserCommand(
    operator(service),
    { userId: "user-0001", userSecret, authUserId: AUTH_USER },
    0,
  );
  expect(refused).toMatchObject({ exit: 1, document: { created: false, before: "stored" } });
  expect(refused.text).toMatch(/^user-0001 is known and keeps its old secret: .* SnapTrade refused \(401/);

  const guards = { ...service.guards, reserveCallsNow: async () => NONE };
  const unheard = await addUserCommand(operator({ ...service, guards }), { ...seeded(1), authUserId: undefined }, 0);
  expect(unheard.text).toMatch(/^user-0001 is known and keeps its old secret: .* has none free/);
  expect(await storedUser("user-0001")).toEqual(before);
});

test("the new secret of a known user is stored before any job could read with the old one", async () => {
  const { sql } = app.stack.database;
  const before = (await storedUser("user-0001"))?.secret_ciphertext;
  await sql`update snaptrade_accounts set holdings_synced_at = null where account_id = 'acct-0002'`;
  const store: typeof service.store = {
    ...service.store,
    async acceptJobs(request) {
      expect((await storedUser("user-0001"))?.secret_ciphertext).not.toBe(before);
      return service.store.acceptJobs(request);
    },
  };
  const report = await addUserCommand(operator({ ...service, store }), { ...seeded(1), authUserId: undefined }, MINUTE);
  expect(report).toMatchObject({ exit: 0, document: { before: "stored", jobs: 1 } });
  await expect.poll(openJobs, RUNS).toBe(0);
});

test("adding a user again replaces its secret, and queues nothing that is up to date", async () => {
  const user = seeded(1);
  const before = (await storedUser("user-0001"))?.secret_ciphertext;
  const report = await addUserCommand(operator(service), { ...user, authUserId: AUTH_USER }, MINUTE);
  expect(report).toMatchObject({ exit: 0, document: { created: false, jobs: 0, left: 0, released: 0 } });
  expect(report.text).toContain("its secret is replaced");
  const after = await storedUser("user-0001");
  expect(after?.secret_ciphertext).not.toBe(before);
  expect(after?.auth_user_id).toBe(AUTH_USER);
});

test("a secret that SnapTrade refuses is told, with what to do, and without the secret", async () => {
  const userSecret = "0f7e1f1c-not-the-secret-of-this-user";
  const report = await addUserCommand(
    operator(service),
    { userId: "user-0002", userSecret, authUserId: undefined },
    MINUTE,
  );
  expect(report).toMatchObject({ exit: 1, document: { userId: "user-0002", created: true } });
  expect(report.text).toMatch(
    /^user-0002 is added, but its accounts were not read: SnapTrade refused \(401.*Mend that and repeat the command/i,
  );
  expect(JSON.stringify(report)).not.toContain(userSecret);
});

test("a listing waits while the budget has no call free, and goes on when it has", async () => {
  let looks = 0;
  const guards: typeof service.guards = {
    ...service.guards,
    reserveCallsNow: async (calls) => {
      looks += 1;
      return looks < 3 ? NONE : { calls, slotAt: 0 };
    },
  };
  const tools = operator({ ...service, guards });
  const report = await addUserCommand(tools, { ...seeded(2), authUserId: undefined }, MINUTE);
  expect(report).toMatchObject({ exit: 0, document: { created: false, accounts: 2 } });
  expect(tools.waits).toEqual([2_000, 2_000]);
  expect(tools.notes).toEqual([expect.stringMatching(/^The budget of provider calls has none free; waiting, at most/)]);
});

test("a listing that waits longer than asked ends with exit code 1, and the user stays stored", async () => {
  let now = Date.now();
  const guards = { ...service.guards, reserveCallsNow: async () => NONE };
  const tools = operator({ ...service, guards, clock: () => now }, (ms) => {
    now += ms;
  });
  const report = await addUserCommand(tools, { ...seeded(3), authUserId: undefined }, 5_000);
  expect(report).toMatchObject({ exit: 1, document: { error: expect.stringContaining("longer than 5s") } });
  expect(tools.waits).toEqual([2_000, 2_000]);
  expect(await storedUser("user-0003")).toMatchObject({ deleted_at: null, listed_at: null });
});

test("while Redis is away nothing is waited for: the command says what to check", async () => {
  const guards = { ...service.guards, reserveCallsNow: async () => NONE, read: async () => AWAY };
  const tools = operator({ ...service, guards });
  const report = await addUserCommand(tools, { ...seeded(3), authUserId: undefined }, MINUTE);
  expect(report).toMatchObject({
    exit: 1,
    document: { error: expect.stringMatching(/UPSTASH_REDIS_REST_URL and its token\. Mend/) },
  });
  expect(tools.waits).toEqual([]);
});
