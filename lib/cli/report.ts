import type { Terminal } from "@/lib/cli/terminal";
import type { Service } from "@/lib/service";

/** What every command works with. */
export type Tools = { service: Service; terminal: Terminal };

/** 0: done. 1: not done, or only in part. 2: asked for wrongly, or the environment is not fit. */
export type ExitCode = 0 | 1 | 2;

/** A command's answer: one document for machines, one text for people. */
export type Report = { exit: ExitCode; document: object; text: string };

export function failure(message: string, exit: 1 | 2 = 1): Report {
  return { exit, document: { error: message }, text: message };
}
