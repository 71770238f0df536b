import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { reencryptSecrets } from "@/lib/cli/commands/reencrypt-secrets";
import { decryptSecret, encryptSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";
import { operator } from "@/tests/integration/cli/operator";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

const [oldKey, newKey, strangeKey] = [randomBytes(32), randomBytes(32), randomBytes(32)];
/** More than one page of 200, and not a whole number of them. */
const USERS = 205;

let app: ServedApp<object>;

beforeAll(async () => {
  app = await serveApp({});
});
afterAll(() => app.close());

const idOf = (n: number) => `user-${String(n).padStart(4, "0")}`;
const secretOf = (userId: string) => `secret of ${userId}`;
const sealed = (userId: string, key: Buffer) => encryptSecret(secretOf(userId), [key], userId);

/** The service of a shell that has these keys, in this order. */
function withKeys(keys: Service["env"]["snaptrade"]["secretsKeys"], store: Partial<Service["store"]> = {}): Service {
  const { service } = app;
  return {
    ...service,
    env: { ...service.env, snaptrade: { ...service.env.snaptrade, secretsKeys: keys } },
    store: { ...service.store, ...store },
  };
}

async function storeUsers(users: { userId: string; key: Buffer }[]): Promise<void> {
  const rows = users.map(({ userId, key }) => ({ user_id: userId, secret_ciphertext: sealed(userId, key) }));
  await app.stack.database.sql`insert into snaptrade_users ${app.stack.database.sql(rows)}`;
}

async function stored(): Promise<Map<string, string | null>> {
  const rows = await app.stack.database.sql`select user_id, secret_ciphertext from snaptrade_users order by 1`;
  return new Map(rows.map((row) => [row.user_id, row.secret_ciphertext]));
}

beforeEach(async () => {
  await app.stack.database.sql`delete from snaptrade_users`;
});

test("after it every secret opens with the first key alone, over all pages, and a repetition changes nothing", async () => {
  await storeUsers(Array.from({ length: USERS }, (_, n) => ({ userId: idOf(n), key: n % 5 === 0 ? newKey : oldKey })));
  const upToDate = USERS / 5;
  const report = await reencryptSecrets(operator(withKeys([newKey, oldKey])));
  expect(report).toMatchObject({ exit: 0, document: { rewritten: USERS - upToDate, upToDate, unreadable: [] } });
  expect(report.text).toBe(
    `${USERS - upToDate} secrets rewritten under the first key of SNAPTRADE_SECRETS_KEY, ${upToDate} were under it already.\n` +
      "No other key is needed any more.",
  );
  const after = await stored();
  expect(after.size).toBe(USERS);
  for (const [userId, text] of after) expect(decryptSecret(text ?? "", [newKey], userId)).toBe(secretOf(userId));

  const again = await reencryptSecrets(operator(withKeys([newKey])));
  expect(again).toMatchObject({ exit: 0, document: { rewritten: 0, upToDate: USERS, unreadable: [] } });
  expect(await stored()).toEqual(after);
});

test("users whose secret opens with none of the keys are named and left as they are; the others are rewritten", async () => {
  await storeUsers([
    { userId: "user-a", key: oldKey },
    { userId: "user-b", key: strangeKey },
    { userId: "user-c", key: oldKey },
  ]);
  await app.stack.database.sql`insert into snaptrade_users (user_id, secret_ciphertext) values ('user-d', 'no form')`;
  const before = await stored();
  const report = await reencryptSecrets(operator(withKeys([newKey, oldKey])));
  expect(report).toMatchObject({
    exit: 1,
    document: { rewritten: 2, upToDate: 0, unreadable: ["user-b", "user-d"] },
    text: expect.stringMatching(/\nuser-b: its secret opens with none of the keys\nuser-d: .*\nPut the key/),
  });
  const after = await stored();
  expect([after.get("user-b"), after.get("user-d")]).toEqual([before.get("user-b"), before.get("user-d")]);
  expect(decryptSecret(after.get("user-c") ?? "", [newKey], "user-c")).toBe(secretOf("user-c"));
  expect(JSON.stringify(report) + JSON.stringify(app.log)).not.toContain("secret of");
});

test("a secret that is stored meanwhile wins, and is looked at too; a user who is removed meanwhile stays removed", async () => {
  const others = ["user-b", "user-d"];
  await storeUsers(["user-a", ...others, "user-c"].map((userId) => ({ userId, key: oldKey })));
  const { store } = app.service;
  const fresh = (userId: string, key: Buffer) => encryptSecret(`newer secret of ${userId}`, [key], userId);
  let calls = 0;
  const service = withKeys([newKey, oldKey], {
    async replaceSecrets(request) {
      calls += 1;
      if (calls === 1) {
        // One by a shell that has the new key first, one by a shell that has not yet.
        await store.putUser({ userId: "user-b", secretCiphertext: fresh("user-b", newKey) });
        await store.putUser({ userId: "user-d", secretCiphertext: fresh("user-d", oldKey) });
        await store.removeUser({ userId: "user-c" });
      }
      return store.replaceSecrets(request);
    },
  });
  const report = await reencryptSecrets(operator(service));
  expect(report).toMatchObject({ exit: 0, document: { rewritten: 2, upToDate: 1, unreadable: [] } });
  const after = await stored();
  for (const userId of others) {
    expect(decryptSecret(after.get(userId) ?? "", [newKey], userId)).toBe(`newer secret of ${userId}`);
  }
  expect(after.get("user-c")).toBeNull();
});
