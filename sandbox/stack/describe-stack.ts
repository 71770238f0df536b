import { table } from "@/lib/cli/text";
import type { RunningStack } from "@/sandbox/stack/start-stack";

/** What a program needs to use the stack, on one line. */
export function stackLine(stack: RunningStack): string {
  const { app, redis, qstash, qstashKeys, supabase, snaptrade, snaptradeKeys, cronSecret, envFile } = stack;
  const [user] = snaptrade.users();
  return JSON.stringify({
    ready: true,
    app: app.url,
    redis,
    qstash: { url: qstash.url, ...qstashKeys },
    supabase,
    snaptrade: { url: snaptrade.url, ...snaptradeKeys },
    cronSecret,
    pids: { app: app.pid() },
    envFile,
    ...(user === undefined ? {} : { user }),
  });
}

/** What a person needs. What is to be copied stands last in its row, so that a shell takes it as it is. */
export function stackTable(stack: RunningStack): string {
  const { app, redis, qstash, supabase, snaptrade, snaptradeKeys } = stack;
  const [user] = snaptrade.users();
  const event = `{"eventType":"ACCOUNT_HOLDINGS_UPDATED","accountId":"${snaptrade.accounts().at(3)?.accountId ?? "acct-0003"}"}`;
  return table(
    [],
    [
      ["app", app.url],
      ["app log", stack.appLog],
      ["webhook", `${app.url}/api/snaptrade/webhook  signed with ${snaptradeKeys.consumerKey}`],
      ["health, metrics", `${app.url}/api/health, /api/metrics  bearer ${stack.cronSecret}`],
      ["crons", stack.crons ? "on: each minute" : "off: health will say degraded; start with --crons"],
      ["SnapTrade", `${snaptrade.url}  control: /_sim/state, /_sim/accounts/{id}, /_sim/emit`],
      ["QStash", `${qstash.url}  token ${stack.qstashKeys.token}`],
      ["Redis (REST)", `${redis.url}  token ${redis.token}`],
      ["Supabase", `${supabase.url}  key ${supabase.secretKey}`],
      ["Postgres", `${supabase.databaseUrl}  psql takes this`],
      ...(user === undefined ? [] : [["user", `${user.userId}  secret ${user.userSecret}`]]),
      ["send a webhook", `curl -X POST ${snaptrade.url}/_sim/emit \\\n  -d '${event}'`],
      ["operators", `set -a; . ${stack.envFile}; set +a\nnpm run ops -- jobs`],
    ],
  );
}
