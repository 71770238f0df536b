import { afterAll, beforeAll, expect, test } from "vitest";
import { importUsers } from "@/lib/cli/commands/import-users";
import type { Service } from "@/lib/service";
import { StoreError } from "@/lib/store/call-function";
import { operator, patient } from "@/tests/integration/cli/operator";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

let app: ServedApp<{ snaptrade: { accounts: number; rateLimitPerMinute: number } }>;
let service: Service;

beforeAll(async () => {
  app = await serveApp({ snaptrade: { accounts: 8, rateLimitPerMinute: 6000 } });
  service = patient(app.service);
});
afterAll(() => app.close());

const secretOf = (n: number) => app.stack.snaptrade.users()[n]?.userSecret ?? "";
const storedUsers = async () => {
  const rows = await app.stack.database.sql`select user_id from snaptrade_users where deleted_at is null order by 1`;
  return rows.map((row) => row.user_id);
};

test("bad lines of an import are told by their number, never by a secret, and the others are added", async () => {
  const text = [
    "userId,userSecret,authUserId",
    `user-0000,${secretOf(0)},`,
    "user 0001,marker-secret-a,",
    "user-0001,marker-secret-b,not-a-uuid",
    "user-0002,marker-secret-c,",
    `user-0003,${secretOf(3)},6f1f5c1e-2f5b-4a51-9d2e-3a6c1f0e8b77`,
  ].join("\n");
  const report = await importUsers(operator(service), { name: "users.csv", text, waitMs: 60_000 });
  expect(report).toMatchObject({
    exit: 1,
    document: { users: 5, added: 2, replaced: 0, connections: 2, accounts: 4, jobs: 8, left: 0, released: 0 },
  });
  expect(report.document).toMatchObject({
    failed: [
      { line: 3, error: expect.stringMatching(/^userId is not/) },
      { line: 4, error: expect.stringMatching(/^authUserId is not a UUID/) },
      {
        line: 5,
        error: expect.stringMatching(/^the user is added, but its accounts were not read: SnapTrade refused/),
      },
    ],
  });
  expect(report.text).toContain("5 users in users.csv: 2 added, 0 replaced, 3 failed.");
  expect(report.text).toContain("\nline 3: userId is not");
  expect(JSON.stringify(report)).not.toContain("marker");
  expect(await storedUsers()).toEqual(["user-0000", "user-0002", "user-0003"]);
});

test("an import may be repeated, in JSON lines too: known users get their secret again", async () => {
  const text = [0, 1].map((n) => JSON.stringify({ userId: `user-000${n}`, userSecret: secretOf(n) })).join("\n");
  const report = await importUsers(operator(service), { name: "users.jsonl", text, waitMs: 60_000 });
  expect(report).toMatchObject({ exit: 0, document: { users: 2, added: 1, replaced: 1, failed: [] } });
  expect(await storedUsers()).toEqual(["user-0000", "user-0001", "user-0002", "user-0003"]);
});

test("a known user whose new secret is refused keeps the old one, and the import says so", async () => {
  const secret = async () => {
    const [row] = await app.stack.database
      .sql`select secret_ciphertext from snaptrade_users where user_id = 'user-0000'`;
    return row?.secret_ciphertext;
  };
  const before = await secret();
  const text = "userId,userSecret\nuser-0000,marker-secret-d";
  const report = await importUsers(operator(service), { name: "f", text, waitMs: 60_000 });
  expect(report).toMatchObject({ exit: 1, document: { added: 0, replaced: 0 } });
  expect(report.text).toMatch(/line 2: the user is known and keeps its old secret: .*SnapTrade refused/);
  expect(await secret()).toBe(before);
});

test("a database that goes away stops the import, which says where", async () => {
  const store: typeof service.store = {
    ...service.store,
    putUser: async (request) => {
      if (request.userId === "user-0000") return service.store.putUser(request);
      throw new StoreError("snaptrade_put_user", "", "fetch failed", true);
    },
  };
  const text = [0, 1, 2].map((n) => JSON.stringify({ userId: `user-000${n}`, userSecret: secretOf(n) })).join("\n");
  const report = await importUsers(operator({ ...service, store }), { name: "f", text, waitMs: 60_000 });
  expect(report).toMatchObject({ exit: 1, document: { users: 3, replaced: 1 } });
  expect(report.document).toMatchObject({
    failed: [
      { line: 2, error: expect.stringMatching(/^the import stopped here, the rest was not tried: .*fetch failed/) },
    ],
  });
});

test("a file without users is a fault", async () => {
  const report = await importUsers(operator(service), { name: "empty.csv", text: "\n", waitMs: 0 });
  expect(report).toMatchObject({ exit: 1, document: { error: "empty.csv has no users in it." } });
});
