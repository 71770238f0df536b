import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Command, Option } from "commander";
import { CONTESTANT_NAMES, type ContestantName, loadContestant } from "@/bench/contestants/all";
import { scenarioChart } from "@/bench/report/chart";
import type { Row } from "@/bench/report/row";
import { smokeFaults } from "@/bench/report/smoke";
import { scenarioTable } from "@/bench/report/table";
import { targetsOf, targetsTable } from "@/bench/report/targets";
import { runRow, say } from "@/bench/run-row";
import { SCENARIOS, SMOKE } from "@/bench/scenarios/all";
import { startDatabases } from "@/bench/world/databases";
import { colors } from "@/lib/cli/text";
import { startRedis } from "@/sandbox/redis/start-redis";
import type { Closers } from "@/sandbox/stack/closers";
import { positiveNumber } from "@/sandbox/stack/command-options";
import { runUntilStopped } from "@/sandbox/stack/run-until-stopped";

type Options = {
  scenario?: string[];
  contestant?: ContestantName[];
  smoke: boolean;
  timeScale?: number;
  json: boolean;
};

const OWN = "this";
const SMOKE_CONTESTANTS: readonly ContestantName[] = [OWN, "plan"];
/** The small one runs where others work too. */
const TIME_SCALE = { usual: 10, smoke: 4 };
const letters = [...new Set(SCENARIOS.map(({ name }) => name.slice(0, 1)))];

const options = new Command("bench")
  .description(
    "This service against what others would use, on the same simulator, storm and machine, one after another.",
  )
  .addOption(new Option("--scenario <letter...>", "which; otherwise all").choices(letters))
  .addOption(new Option("--contestant <name...>", "who; otherwise all").choices(CONTESTANT_NAMES).conflicts("smoke"))
  .option("--smoke", "a small storm for two contestants; exit code 1 when the service misses its mark", false)
  .option("--time-scale <n>", "how many times as fast the row's time runs (default: 10; --smoke 4)", positiveNumber)
  .option("--json", "the rows as JSON instead of tables", false)
  .parse()
  .opts<Options>();

await runUntilStopped((closers) => bench(options, closers));

async function bench({ scenario, contestant, smoke, timeScale, json }: Options, closers: Closers): Promise<number> {
  const scenarios = smoke ? [SMOKE] : SCENARIOS.filter(({ name }) => scenario?.includes(name.slice(0, 1)) ?? true);
  const names = contestant ?? (smoke ? SMOKE_CONTESTANTS : CONTESTANT_NAMES);
  const contestants = await Promise.all(names.map(loadContestant));
  const scale = timeScale ?? (smoke ? TIME_SCALE.smoke : TIME_SCALE.usual);

  const redis = await startRedis();
  closers.add("Redis", redis.close);
  if (redis.kind !== "server") throw new Error("The bench needs redis-server or valkey-server on PATH.");
  const databases = await startDatabases();
  closers.add("Postgres", databases.close);

  /** What is kept beside the code is a whole run. */
  const isWhole = !smoke && scenario === undefined && contestant === undefined;
  const rows: Row[] = [];
  for (const each of scenarios) {
    say(`Scenario ${each.name}: ${each.title}`);
    const before = rows.length;
    for (const who of contestants.filter(({ name }) => each.isOwnBaseline !== true || name === OWN)) {
      const run = (timeScale: number) => runRow({ databases, redis }, each, who, timeScale, closers.isClosing);
      const usual = Math.min(scale, each.mostTimeScale ?? scale);
      const row = await run(usual);
      // A machine that is too busy is less so where time runs half as fast.
      rows.push(row.valid || smoke ? row : await run(usual / 2));
    }
    const own = rows.slice(before);
    if (!json) process.stdout.write(`\n${colors.bold(`${each.name}: ${each.title}`)}\n${scenarioTable(own)}\n`);
    if (isWhole) {
      if (each.isOwnBaseline !== true) {
        await keep(path.join("charts", `${each.name}.svg`), scenarioChart(`${each.name}: ${each.title}`, own));
      }
      // After each scenario: what was measured is not lost with a run that breaks off.
      const reasons = Object.fromEntries(contestants.map(({ name, reason }) => [name, reason]));
      const results = { timeScale: scale, reasons, targets: targetsOf(rows, OWN), rows };
      await keep("results.json", `${JSON.stringify(results, null, 2)}\n`);
    }
  }
  if (json) process.stdout.write(`${JSON.stringify(rows)}\n`);
  if (smoke) return judgeSmoke(rows);
  if (!json) process.stdout.write(`\n${targetsTable(targetsOf(rows, OWN))}\n`);
  return 0;
}

function judgeSmoke(rows: readonly Row[]): number {
  const own = rows.find(({ contestant }) => contestant === OWN);
  const other = rows.find(({ contestant }) => contestant !== OWN);
  const faults = own === undefined || other === undefined ? ["a row is missing"] : smokeFaults(own, other);
  if (faults.length > 0) say(`The service missed its mark: ${faults.join(", ")}`);
  return faults.length === 0 ? 0 : 1;
}

async function keep(name: string, text: string): Promise<void> {
  const file = path.join(import.meta.dirname, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}
