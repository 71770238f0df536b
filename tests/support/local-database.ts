import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { inject } from "vitest";
import { createDatabase, dropDatabase, withDatabase } from "@/sandbox/postgres/databases";
import { askForPostgres } from "@/tests/support/shared-services";

export type LocalDatabase = {
  /** As role `postgres`, the owner: passes row-level security. */
  url: string;
  sql: postgres.Sql;
  /** Closes `sql` and drops the database, whoever is still connected. */
  close(): Promise<void>;
};

/** A new database with all migrations applied, of this caller alone. */
export async function freshDatabase(): Promise<LocalDatabase> {
  const { adminUrl, owner, template } = await askForPostgres(inject("sharedServicesUrl"));
  const name = `test_${randomBytes(8).toString("hex")}`;
  await createDatabase(adminUrl, { name, template, owner });
  const url = new URL(withDatabase(adminUrl, name));
  url.username = owner;
  const sql = postgres(url.href, { max: 10, onnotice: () => undefined });
  return {
    url: url.href,
    sql,
    close: async () => {
      await sql.end({ timeout: 1 });
      await dropDatabase(adminUrl, name);
    },
  };
}
