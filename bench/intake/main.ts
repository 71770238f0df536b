import { writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import path from "node:path";
import { Command, Option } from "commander";
import getPort from "get-port";
import { COLLECTS_ON_SIGNAL } from "@/bench/intake/app-usage";
import { buildWithRoutes } from "@/bench/intake/build-with-routes";
import { connect } from "@/bench/intake/load";
import { measureLatency } from "@/bench/intake/measure-latency";
import { measureMemory } from "@/bench/intake/measure-memory";
import { measureThroughput } from "@/bench/intake/measure-throughput";
import { profileKinds } from "@/bench/intake/profile";
import { type Figures, figuresTable, targetsOf, targetsTable } from "@/bench/intake/report";
import { type App, startApp } from "@/bench/intake/start-app";
import { startIntakeStack } from "@/bench/intake/start-stack";
import { say } from "@/bench/run-row";
import type { Closers } from "@/sandbox/stack/closers";
import { runUntilStopped } from "@/sandbox/stack/run-until-stopped";

const PARTS = ["throughput", "latency", "memory"] as const;
type Part = (typeof PARTS)[number];
type Options = { quick: boolean; json: boolean; strict: boolean; profile?: string; part?: Part[] };

const IN_FLIGHT = 16;
/** More than requests a second: at a constant rate none should wait for a connection. */
const CONNECTIONS = 128;
const FULL = {
  throughput: { rounds: 5, turns: 5, events: 500, inFlight: IN_FLIGHT },
  latency: { rounds: 5, seconds: 10 },
  memory: { early: 20_000, late: 200_000, inFlight: IN_FLIGHT, idleSeconds: 10 },
};
/** To see that it works; its figures say little. */
const QUICK = {
  throughput: { rounds: 3, turns: 2, events: 300, inFlight: IN_FLIGHT },
  latency: { rounds: 1, seconds: 2 },
  memory: { early: 1_000, late: 3_000, inFlight: IN_FLIGHT, idleSeconds: 2 },
};

const options = new Command("bench:intake")
  .description("What an event costs at the door: duplicate, coalesced and accepted ones against two bare routes.")
  .option("--quick", "small rounds, to see that it works", false)
  .addOption(new Option("--part <name...>", "which; otherwise all").choices(PARTS))
  .option("--profile <folder>", "instead: where the app's processor time goes; the profiles are kept there")
  .option("--json", "JSON instead of tables", false)
  .option("--strict", "exit code 1 when a target is not met", false)
  .parse()
  .opts<Options>();

await runUntilStopped((closers) => benchIntake(options, closers));

async function benchIntake({ quick, json, strict, profile, part }: Options, closers: Closers): Promise<number> {
  const sizes = quick ? QUICK : FULL;
  const [load = 0] = loadavg();
  if (load > 1)
    say(`Others work on this machine (load ${load.toFixed(1)}): the ratios are a hint, the figures are not.`);
  await buildWithRoutes(closers);
  const eventsOfARound = sizes.throughput.turns * sizes.throughput.events;
  const stack = await startIntakeStack(Math.max(eventsOfARound, 2_000), closers);

  const start = async (nodeOptions: string[] = []): Promise<App> => {
    const port = await getPort({ host: "127.0.0.1" });
    const app = await startApp({ port, env: stack.env(port), nodeOptions });
    closers.add("the app", app.close);
    return app;
  };
  if (profile !== undefined) {
    process.stdout.write(`${await profileKinds(profile, stack, start, eventsOfARound, IN_FLIGHT)}\n`);
    return 0;
  }

  const parts = new Set<Part>(part ?? PARTS);
  const figures: Figures = {};
  if (parts.has("throughput") || parts.has("latency")) {
    const app = await start();
    const pool = connect(app.url, CONNECTIONS);
    closers.add("connections", () => pool.destroy());
    if (parts.has("throughput")) figures.throughput = await measureThroughput(stack, app, pool, sizes.throughput);
    if (parts.has("latency")) figures.latency = await measureLatency(stack, pool, sizes.latency);
    await app.close();
  }
  if (parts.has("memory")) {
    const app = await start(COLLECTS_ON_SIGNAL);
    const pool = connect(app.url, CONNECTIONS);
    closers.add("connections", () => pool.destroy());
    figures.memory = await measureMemory(stack, app, pool, sizes.memory);
  }

  const targets = targetsOf(figures);
  const result = { node: process.version, inFlight: IN_FLIGHT, targets, ...figures };
  process.stdout.write(
    json ? `${JSON.stringify(result)}\n` : `\n${figuresTable(figures)}\n\n${targetsTable(targets)}\n`,
  );
  // What is kept beside the code is a whole run.
  const isWhole = !quick && part === undefined;
  if (isWhole)
    await writeFile(path.resolve(import.meta.dirname, "../intake.json"), `${JSON.stringify(result, null, 2)}\n`);
  return strict && targets.some(({ met }) => !met) ? 1 : 0;
}
