import { readFile } from "node:fs/promises";
import path from "node:path";

export type ReadInput = { kind: "read"; name: string; text: string } | { kind: "bad"; error: string };

/** The text of a file that an operator names, or of standard input for `-`. */
export async function readInput(file: string, input: NodeJS.ReadableStream): Promise<ReadInput> {
  if (file === "-") return { kind: "read", name: "standard input", text: await readAll(input) };
  const name = path.resolve(file);
  try {
    return { kind: "read", name, text: await readFile(name, "utf8") };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return { kind: "bad", error: `${name} could not be read: ${REASONS[code] ?? (code || "no reason")}.` };
  }
}

const REASONS: Record<string, string> = {
  ENOENT: "there is no such file",
  EACCES: "you may not read it",
  EISDIR: "it is a folder",
};

export async function readAll(input: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}
