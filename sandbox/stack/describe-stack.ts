import Table from "cli-table3";
import pc from "picocolors";
import type { RunningStack } from "@/sandbox/stack/start-stack";

/** What a program needs to use the stack, on one line. */
export function stackLine(stack: RunningStack): string {
  const { app, redis, qstash, qstashKeys, supabase, snaptrade, snaptradeKeys, cronSecret } = stack;
  return JSON.stringify({
    ready: true,
    app: app.url,
    redis,
    qstash: { url: qstash.url, ...qstashKeys },
    supabase,
    snaptrade: { url: snaptrade.url, ...snaptradeKeys },
    cronSecret,
    pids: { app: app.pid() },
  });
}

/** What a person needs. */
export function stackTable(stack: RunningStack): string {
  const table = new Table({ style: { head: [], border: [] } });
  const { app, redis, qstash, supabase, snaptrade, snaptradeKeys } = stack;
  table.push(
    [pc.bold("app"), app.url, `log: ${stack.appLog}`],
    ["webhook", `${app.url}/api/snaptrade/webhook`, `signed with ${snaptradeKeys.consumerKey}`],
    ["crons, health, metrics", `${app.url}/api/...`, `bearer ${stack.cronSecret}`],
    ["SnapTrade", snaptrade.url, "control: /_sim/state, /_sim/accounts/{id}, /_sim/emit"],
    ["QStash", qstash.url, `token ${stack.qstashKeys.token}`],
    ["Redis (REST)", redis.url, `token ${redis.token}`],
    ["Supabase", supabase.url, `key ${supabase.secretKey}`],
    ["Postgres", supabase.databaseUrl, "psql takes this"],
  );
  return table.toString();
}
