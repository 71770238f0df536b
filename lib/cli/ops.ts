import { type Command, Option } from "commander";
import { type JobFilter, listDeadJobs, listJobs } from "@/lib/cli/commands/list-jobs";
import { replayAll, replayJobs } from "@/lib/cli/commands/replay-jobs";
import { pauseDeliveries, resumeDeliveries } from "@/lib/cli/commands/switch-deliveries";
import { syncAccount } from "@/lib/cli/commands/sync-account";
import { readId, readJobIds, readLimit } from "@/lib/cli/option-values";
import { command, createProgram, type Output, runCommand, runProgram } from "@/lib/cli/run-command";
import { JOB_STATUSES, type JobStatus, WORK_TYPES, type WorkType } from "@/lib/domain";

/** `npm run ops`: what an operator looks at and does about jobs. */
const program = createProgram("ops", "Shows jobs, replays dead ones, pauses deliveries, syncs an account by hand.");

const account = () => new Option("--account <id>", "of this account only").argParser(readId);
const limit = () => new Option("--limit <n>", "at most so many, up to 500").argParser(readLimit).default(50);

type ListOptions = Output & { status?: JobStatus; account?: string; limit: number };

command(program, "jobs", "list jobs, newest first")
  .addOption(new Option("--status <status>", "of this status only").choices(JOB_STATUSES))
  .addOption(account())
  .addOption(limit())
  .action((options: ListOptions) => runCommand(options, (tools) => listJobs(tools, filterOf(options))));

command(program, "dead", "list dead jobs: they have used their attempts, or cannot succeed")
  .addOption(account())
  .addOption(limit())
  .action((options: ListOptions) => runCommand(options, (tools) => listDeadJobs(tools, filterOf(options))));

command(program, "replay", "queue dead jobs again, with fresh attempts and through the provider budget")
  .argument("[job-ids...]", "ids of dead jobs", readJobIds)
  .option("--all", "every dead job; waits for free slots between pages")
  .action(async (ids: string[], options: Output & { all?: true }, self: Command) => {
    if ((options.all === true) === ids.length > 0) self.error("error: say which: job ids, or --all");
    await runCommand(options, (tools) => (options.all === true ? replayAll(tools) : replayJobs(tools, ids)));
  });

command(program, "pause", "let QStash hold back all deliveries; webhooks are still accepted").action(
  (options: Output) => runCommand(options, pauseDeliveries),
);

command(program, "resume", "let QStash deliver again").action((options: Output) =>
  runCommand(options, resumeDeliveries),
);

command(program, "sync", "read an account's holdings and transactions now")
  .argument("<account-id>", "the account's id at SnapTrade", readId)
  .addOption(new Option("--work-type <type>", "only this").choices(WORK_TYPES))
  .action((accountId: string, options: Output & { workType?: WorkType }) =>
    runCommand(options, (tools) =>
      syncAccount(tools, accountId, options.workType === undefined ? [...WORK_TYPES] : [options.workType]),
    ),
  );

function filterOf({ status, account: accountId, limit: most }: ListOptions): JobFilter {
  return {
    limit: most,
    ...(status === undefined ? {} : { status }),
    ...(accountId === undefined ? {} : { accountId }),
  };
}

await runProgram(program);
