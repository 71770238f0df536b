import { randomUUID } from "node:crypto";
import { test } from "vitest";
import { freshDatabase } from "@/tests/support/local-database";
test("time", async () => {
  const db = await freshDatabase(); const { sql } = db;
  await sql`insert into snaptrade_users (user_id) values ('u')`;
  await sql`insert into snaptrade_accounts (account_id, user_id, detail_read_at) select 'a' || i, 'u', now() from generate_series(1, 20000) i`;
  await sql`insert into snaptrade_sync_jobs (work_type, account_id, reason, status, finished_at) select 'holdings', 'a' || i, 'sweep', 'done', now() from generate_series(1, 20000) i`;
  await sql`analyze`;
  for (const n of [10, 100, 100, 250, 500, 1000, 1000]) {
    const off = Math.floor(Math.random()*18000);
    await sql`delete from snaptrade_sync_jobs where status = 'queued'`;
    const items = Array.from({length: n}, (_, i) => ({ jobId: randomUUID(), workType: "holdings", accountId: `a${off+i+1}` }));
    const t = Date.now();
    const [r] = await sql`explain (analyze, format json) select snaptrade_accept_jobs(${JSON.stringify({ reason: "sweep", spacingMs: 0, items })}::text::jsonb)`;
    console.log(n, Date.now() - t, r?.["QUERY PLAN"][0]["Execution Time"]);
  }
  await db.close();
});
