import { Command } from "commander";
import { runDemo } from "@/sandbox/demo/run-demo";
import { positiveNumber, wholeNumber } from "@/sandbox/stack/command-options";
import { runUntilStopped } from "@/sandbox/stack/run-until-stopped";

type Options = { file?: string; speed: number; rateLimit: number; killApp: boolean; keep: boolean };

const options = new Command("demo")
  .description(
    "A storm of webhooks against the sandbox, and whether every account came out right. Exit code 0: it did.",
  )
  .option("--file <path>", "replay a recorded storm: gzipped JSON lines {atMs, body, signature}")
  .option("--speed <x>", "2: twice as fast as recorded", positiveNumber, 1)
  .option("--rate-limit <n>", "SnapTrade calls a minute", wholeNumber(1, 1_000_000), 4000)
  .option("--kill-app", "SIGKILL the app in the middle of the storm", false)
  .option("--keep", "leave everything running afterwards", false)
  .parse()
  .opts<Options>();

await runUntilStopped((closers) => runDemo(options, closers));
