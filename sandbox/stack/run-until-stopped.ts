import { type Closers, createClosers } from "@/sandbox/stack/closers";

/** Exit code of a process that SIGINT ended. */
const INTERRUPTED = 130;

/**
 * Runs the work, stops everything that it handed to its closers, and exits with the code that it answers: also when it
 * throws (code 1, the message on stderr), and on SIGINT, SIGTERM or SIGHUP, whenever they come. A second signal changes
 * nothing: npm and the terminal may both send one.
 * `interrupted`: the exit code after a signal.
 */
export async function runUntilStopped(
  work: (closers: Closers) => Promise<number>,
  interrupted: number = INTERRUPTED,
): Promise<never> {
  const closers = createClosers();
  const stop = () => {
    closers.close().then(
      () => process.exit(interrupted),
      () => process.exit(1),
    );
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  let code = 1;
  try {
    code = await work(closers);
  } catch (error) {
    if (!closers.isClosing()) process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  }
  if (closers.isClosing()) code = interrupted;
  await closers.close();
  process.exit(code);
}

/** Waits for the signal that ends everything. */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve());
  });
}
