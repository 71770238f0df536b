import { Command, Option } from "commander";
import { collectEnv, wholeNumber } from "@/sandbox/stack/command-options";
import { stackLine, stackTable } from "@/sandbox/stack/describe-stack";
import { portsFrom } from "@/sandbox/stack/ports";
import { runUntilStopped, untilSignal } from "@/sandbox/stack/run-until-stopped";
import { startStack } from "@/sandbox/stack/start-stack";

type Options = {
  portBase?: number;
  json: boolean;
  accounts: number;
  rateLimit: number;
  app: "dev" | "start";
  env: Record<string, string>;
  redisUrl?: string;
  databaseUrl?: string;
  fresh: boolean;
  crons: boolean;
};

const command = new Command("sandbox")
  .description("The service with everything around it on this machine: no account, no Docker. Ctrl-C stops it all.")
  .option("--port-base <n>", "listen on n to n+9 instead of the usual ports", wholeNumber(1024, 65_526))
  .option("--json", "print one line of JSON when all is ready, everything else on stderr", false)
  .option("--accounts <n>", "accounts to seed, two a user", wholeNumber(0, 10_000), 300)
  .option("--rate-limit <n>", "SnapTrade calls a minute, for the simulator and the app", wholeNumber(1, 1_000_000), 250)
  .addOption(
    new Option("--app <mode>", "next start (built when needed) or next dev").choices(["dev", "start"]).default("start"),
  )
  .option("--env <KEY=VALUE>", "a variable for the app; repeatable, wins", collectEnv, {})
  .option("--redis-url <url>", "use this running Redis")
  .option("--database-url <url>", "use this running Postgres; its user must be allowed to create roles")
  .option("--fresh", "seed accounts that were never synced", false)
  .option("--crons", "call the cron routes on their schedule; otherwise nobody does, and health says degraded", false)
  .parse();

const { json, portBase, rateLimit, ...rest } = command.opts<Options>();

await runUntilStopped(async (closers) => {
  const stack = await startStack({ ...rest, ports: portsFrom(portBase), rateLimitPerMinute: rateLimit }, closers);
  process.stdout.write(json ? `${stackLine(stack)}\n` : `${stackTable(stack)}\nCtrl-C stops everything.\n`);
  await untilSignal();
  return 0;
}, 0);
