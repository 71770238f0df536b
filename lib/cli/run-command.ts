import { Command, CommanderError } from "commander";
import { composeForCommand, readEnvironment } from "@/lib/cli/compose";
import { failure, type Report, type Tools } from "@/lib/cli/report";
import { createTerminal } from "@/lib/cli/terminal";
import type { EnvSource } from "@/lib/env";
import { createScrub } from "@/lib/scrub";
import { StoreError } from "@/lib/store/call-function";

const HELP = `
Exit codes: 0 done; 1 not done, or only in part (standard error says what and why); 2 wrong usage or environment.
Settings come from the environment, .env.local and .env, in this order. Every command may be repeated.
With --json standard output carries one JSON document; npm run --silent keeps npm's own lines out of it.`;

/** The option that all commands have. */
export type Output = { json?: true };

/** One of our two programs; `command` adds what each of its commands has in common. */
export function createProgram(name: string, description: string): Command {
  return new Command(`npm run ${name} --`)
    .description(description)
    .addHelpText("afterAll", HELP)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(withoutValues(text)) });
}

export function command(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).option("--json", "answer with one JSON document");
}

/** Parses the command line and runs its command. Never rejects: the exit code tells. */
export async function runProgram(program: Command, argv: string[] = process.argv): Promise<void> {
  // A reader that has seen enough (`| head`) is no fault.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return;
    // Commander has said it on standard error already.
    const said = error instanceof CommanderError ? withoutValues(error.message) : describe(error);
    if (!(error instanceof CommanderError)) process.stderr.write(`${said}\n`);
    if (argv.includes("--json")) process.stdout.write(`${JSON.stringify({ error: said })}\n`);
    process.exitCode = 2;
  }
}

/** Composes the service, runs one command over it, and answers. */
export async function runCommand(
  options: Output,
  run: (tools: Tools, environment: EnvSource) => Promise<Report>,
): Promise<void> {
  const report = await reportOf(run);
  const { exit, document, text } = report;
  if (options.json) process.stdout.write(`${JSON.stringify(document)}\n`);
  if (!options.json && exit === 0) process.stdout.write(`${text}\n`);
  if (exit !== 0) process.stderr.write(`${text}\n`);
  process.exitCode = exit;
}

async function reportOf(run: (tools: Tools, environment: EnvSource) => Promise<Report>): Promise<Report> {
  const environment = readEnvironment();
  const composed = composeForCommand(environment);
  if (composed.kind === "bad") return failure(composed.faults.join("\n"), 2);
  const { service } = composed;
  try {
    return await run({ service, terminal: createTerminal(process.stderr) }, environment);
  } catch (error) {
    return failure(createScrub(service.env.secrets)(describe(error)));
  }
}

function describe(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  if (error instanceof StoreError && error.away) {
    return `Supabase gave no answer: ${said}. Check SUPABASE_URL and that the project is up, then repeat the command.`;
  }
  return said;
}

/** `--secret=...` is no option of ours, but its value must not be repeated. */
function withoutValues(text: string): string {
  return text.replace(/(--?[\w-]+=)[^']*/g, "$1...");
}
