/**
 * `npm run test:mutants [-- name...]`: applies each mutant to a copy of the code and runs the tests that must notice. A
 * mutant that no test notices, or whose text no longer stands in the code, is a failure. Exit code 0: all were noticed.
 */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import Table from "cli-table3";
import pc from "picocolors";
import { z } from "zod";
import type { Edit, Mutant } from "@/tests/mutants/mutant";
import { MUTANTS } from "@/tests/mutants/mutants";

const run = promisify(execFile);
const report = z.object({
  testResults: z.array(
    z.object({ name: z.string(), assertionResults: z.array(z.object({ status: z.string(), fullName: z.string() })) }),
  ),
});

type Verdict = { noticed: boolean; by: string };

/** What belongs to the project, without what is built or installed. */
async function copyOf(root: string): Promise<string> {
  const { stdout } = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root });
  const copy = await mkdtemp(join(tmpdir(), "snaptrade-mutants-"));
  for (const file of stdout.split("\n").filter(Boolean)) {
    await cp(join(root, file), join(copy, file)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error; // deleted, not yet committed
    });
  }
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

async function apply(copy: string, edits: Edit[]): Promise<void> {
  for (const { file, right, wrong } of edits) {
    const text = await readFile(join(copy, file), "utf8");
    const found = text.split(right).length - 1;
    if (found !== 1) throw new Error(`${file} holds ${JSON.stringify(right)} ${found} times, expected once`);
    await writeFile(
      join(copy, file),
      text.replace(right, () => wrong),
    );
  }
}

/** The first test that fails; files one by one, so that a mutant which the first one notices costs no more. */
async function firstFailure(copy: string, tests: string[]): Promise<string | null> {
  for (const file of tests) {
    const output = join(copy, "report.json");
    await rm(output, { force: true });
    await run("npx", ["vitest", "run", file, "--bail=1", "--reporter=json", `--outputFile=${output}`], {
      cwd: copy,
      env: { ...process.env, CI: "", HISTORIES: "400", TWIN_HISTORIES: "40" },
    }).catch(() => {});
    const { testResults } = report.parse(JSON.parse(await readFile(output, "utf8")));
    const failed = testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .find(({ status }) => status === "failed");
    if (failed !== undefined) return `${file}: ${failed.fullName.trim()}`;
    // A file that cannot be run notices nothing.
    const ran = testResults.some(({ assertionResults }) => assertionResults.some(({ status }) => status === "passed"));
    if (!ran) throw new Error(`${file} ran no test`);
  }
  return null;
}

async function judge(root: string, mutant: Mutant): Promise<Verdict> {
  const copy = await copyOf(root);
  try {
    await apply(copy, mutant.edits);
    const by = await firstFailure(copy, mutant.tests);
    return { noticed: by !== null, by: by ?? "no test" };
  } catch (error) {
    return { noticed: false, by: error instanceof Error ? error.message : String(error) };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

const wanted = process.argv.slice(2);
const chosen = MUTANTS.filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)));
const table = new Table({
  head: ["mutant", "", "noticed by"],
  style: { head: [], border: [] },
  colWidths: [40, 10, 70],
  wordWrap: true,
});
let missed = 0;
for (const [i, mutant] of chosen.entries()) {
  process.stderr.write(`${i + 1}/${chosen.length} ${mutant.name}\n`);
  const { noticed, by } = await judge(process.cwd(), mutant);
  if (!noticed) missed += 1;
  table.push([mutant.name, noticed ? pc.green("noticed") : pc.red("MISSED"), by]);
}
process.stdout.write(`${table.toString()}\n${chosen.length - missed} of ${chosen.length} noticed\n`);
process.exitCode = missed === 0 && chosen.length > 0 ? 0 : 1;
