import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { readAll } from "@/lib/cli/read-input";
import type { EnvSource } from "@/lib/env";

export type SecretSource = { kind: "stdin" } | { kind: "env"; name: string };
export type ReadSecret = { kind: "secret"; secret: string } | { kind: "bad"; error: string };

/** Where standard input comes from. On a terminal the secret is asked for and not shown. */
export type Input = NodeJS.ReadableStream & { isTTY?: boolean };

/** The user secret, from where no process list and no shell history shows it. */
export async function readSecret(
  source: SecretSource,
  environment: EnvSource,
  input: Input,
  prompt: (text: string) => void,
): Promise<ReadSecret> {
  if (source.kind === "env") {
    const secret = environment[source.name];
    if (!secret)
      return { kind: "bad", error: `${source.name} is not set: --secret-env names a variable with the secret.` };
    return { kind: "secret", secret };
  }
  const secret = input.isTTY ? await askHidden(input, prompt) : withoutLineEnd(await readAll(input));
  if (secret === "")
    return { kind: "bad", error: "Standard input was empty: --secret-stdin reads the secret from it." };
  return { kind: "secret", secret };
}

async function askHidden(input: Input, prompt: (text: string) => void): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nowhere, terminal: true });
  prompt("User secret (not shown): ");
  try {
    // Ctrl-C and Ctrl-D close the line without an answer.
    const closed = once(lines, "close").then(() => "");
    return (await Promise.race([lines.question(""), closed])).trim();
  } finally {
    lines.close();
    prompt("\n");
  }
}

function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
