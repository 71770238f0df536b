import { addUser, listed, notListed } from "@/lib/cli/commands/add-user";
import { failure, type Report, type Tools } from "@/lib/cli/report";
import { counted } from "@/lib/cli/text";
import { readUserLines } from "@/lib/cli/user-lines";
import { StoreError } from "@/lib/store/call-function";

/** Lines told one by one; the document has all. */
const MOST_FAULTS_SHOWN = 50;

/**
 * Adds the users of a file, one after the other and through the budget. A bad line does not stop the others; a database
 * that is away does. Failures carry the line number and never a value of the line: it may be the secret. Repeating the
 * import is harmless.
 */
export async function importUsers(tools: Tools, file: { name: string; text: string; waitMs: number }): Promise<Report> {
  const lines = readUserLines(file.text);
  if (lines.length === 0) return failure(`${file.name} has no users in it.`);
  const sum = { added: 0, replaced: 0, connections: 0, accounts: 0, jobs: 0, left: 0, released: 0 };
  const failed: { line: number; error: string }[] = [];
  const progress = tools.terminal.progress(lines.length, "users");
  try {
    for (const line of lines) {
      if (line.kind === "bad") failed.push({ line: line.line, error: line.error });
      else {
        const added = await addUser(tools, line.user, file.waitMs);
        if (added.kind === "not_listed") {
          failed.push({ line: line.line, error: `the user ${notListed(added)}` });
        } else {
          sum[added.before === "stored" ? "replaced" : "added"] += 1;
          for (const name of ["connections", "accounts", "jobs", "left", "released"] as const) sum[name] += added[name];
        }
      }
      progress.advance(1);
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const line = lines[sum.added + sum.replaced + failed.length]?.line ?? 0;
    failed.push({ line, error: `the import stopped here, the rest was not tried: ${error.message}` });
  } finally {
    progress.stop();
  }
  const document = { users: lines.length, ...sum, failed };
  return { exit: failed.length === 0 ? 0 : 1, document, text: summary(file.name, document) };
}

type Imported = Parameters<typeof listed>[0] & {
  users: number;
  added: number;
  replaced: number;
  failed: { line: number; error: string }[];
};

function summary(name: string, imported: Imported): string {
  const { users, added, replaced, failed } = imported;
  const shown = failed.slice(0, MOST_FAULTS_SHOWN).map(({ line, error }) => `line ${line}: ${error}`);
  const hidden = failed.length > shown.length ? [`and ${failed.length - shown.length} more (--json has all)`] : [];
  return [
    `${counted(users, "user")} in ${name}: ${added} added, ${replaced} replaced, ${failed.length} failed.`,
    listed(imported),
    ...shown,
    ...hidden,
  ].join("\n");
}
