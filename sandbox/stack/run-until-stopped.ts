import { setTimeout as sleep } from "node:timers/promises";
import { type Closers, createClosers } from "@/sandbox/stack/closers";

/** Exit code of a process that SIGINT ended. */
const INTERRUPTED = 130;

/** How long the work may take to notice that everything was stopped under it. */
const NOTICE_MS = 2_000;

/**
 * Runs the work, stops everything that it handed to its closers, and exits with the code that it answers: also when it
 * throws (code 1, the message on stderr), and on SIGINT, SIGTERM or SIGHUP, whenever they come. A second signal changes
 * nothing: npm and the terminal may both send one.
 * `interrupted`: the exit code where a signal came before the work had its own.
 */
export async function runUntilStopped(
  work: (closers: Closers) => Promise<number>,
  interrupted: number = INTERRUPTED,
): Promise<never> {
  const closers = createClosers();
  const ended = work(closers).catch((error: unknown) => {
    if (closers.isClosing()) return interrupted;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  });
  const stopped = untilSignal().then(async () => {
    await closers.close();
    return Promise.race([ended, sleep(NOTICE_MS, interrupted)]);
  });
  const code = await Promise.race([ended, stopped]);
  await closers.close();
  process.exit(code);
}

/** Waits for the signal that ends everything. */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
}
