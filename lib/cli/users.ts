import { type Command, Option } from "commander";
import { addUserCommand } from "@/lib/cli/commands/add-user";
import { importUsers } from "@/lib/cli/commands/import-users";
import { reencryptSecrets } from "@/lib/cli/commands/reencrypt-secrets";
import { removeUser } from "@/lib/cli/commands/remove-user";
import { readDuration, readId } from "@/lib/cli/option-values";
import { readInput } from "@/lib/cli/read-input";
import { readSecret, type SecretSource } from "@/lib/cli/read-secret";
import { failure } from "@/lib/cli/report";
import { command, createProgram, type Output, runCommand, runProgram } from "@/lib/cli/run-command";
import { readUser } from "@/lib/cli/user-lines";

/** `npm run users`: how SnapTrade's users come into the service and out of it. */
const program = createProgram("users", "Brings SnapTrade users into the service and takes them out.");

const wait = () =>
  new Option("--wait <duration>", "the longest to wait for free calls in the provider budget")
    .argParser(readDuration)
    .default(600_000, "10m");

type AddOptions = Output & { secretStdin?: true; secretEnv?: string; authUser?: string; wait: number };

command(program, "add", "store a user, read its connections and accounts, release its waiting events")
  .argument("<user-id>", "the user's id at SnapTrade", readId)
  .option("--secret-stdin", "read the user secret from standard input (on a terminal: asked for, not shown)")
  .option("--secret-env <name>", "read it from this environment variable")
  .option("--auth-user <uuid>", "the Supabase Auth user who may read this user's data")
  .addOption(wait())
  .addHelpText(
    "after",
    "\nThe secret is never an argument: process lists, shell history and npm would show it. It is stored encrypted.\n" +
      "A user who is known already gets the new secret once SnapTrade has accepted it; until then the old one stays.",
  )
  .action(async (userId: string, options: AddOptions, self: Command) => {
    const { secretStdin, secretEnv, authUser } = options;
    if ((secretStdin === true) === (secretEnv !== undefined)) {
      self.error("error: say where the secret is: --secret-stdin or --secret-env NAME, one of them");
    }
    const source: SecretSource = secretEnv === undefined ? { kind: "stdin" } : { kind: "env", name: secretEnv };
    await runCommand(options, async (tools, environment) => {
      const read = await readSecret(source, environment, process.stdin, (text) => void process.stderr.write(text));
      if (read.kind === "bad") return failure(read.error, 2);
      const entry = readUser({ userId, userSecret: read.secret, authUserId: authUser });
      return entry.kind === "bad" ? failure(entry.error, 2) : addUserCommand(tools, entry.user, options.wait);
    });
  });

command(program, "import", "add the users of a file; bad lines are told and the others go on")
  .argument(
    "<file>",
    "CSV with the header userId,userSecret,authUserId (the last may be missing), or JSON lines; - is stdin",
  )
  .addOption(wait())
  .action(async (file: string, options: Output & { wait: number }) => {
    await runCommand(options, async (tools) => {
      const read = await readInput(file, process.stdin);
      if (read.kind === "bad") return failure(read.error, 2);
      return importUsers(tools, { name: read.name, text: read.text, waitMs: options.wait });
    });
  });

command(program, "remove", "delete a user's secret and close its jobs; nothing is deleted at SnapTrade")
  .argument("<user-id>", "the user's id at SnapTrade", readId)
  .option("--yes", "really remove it")
  .action(async (userId: string, options: Output & { yes?: true }, self: Command) => {
    if (options.yes !== true) {
      self.error(
        `error: this deletes the secret of ${userId} and stops its syncs; repeat it with --yes if that is meant`,
      );
    }
    await runCommand(options, (tools) => removeUser(tools, userId));
  });

command(program, "reencrypt", "write every stored secret under the first key of SNAPTRADE_SECRETS_KEY")
  .addHelpText(
    "after",
    "\nPart of the key's rotation: first the new key before the old one, deployed; then this; then the old one can go.",
  )
  .action((options: Output) => runCommand(options, reencryptSecrets));

await runProgram(program);
