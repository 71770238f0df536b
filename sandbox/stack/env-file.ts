import { writeFile } from "node:fs/promises";

/** Writes `KEY='value'` lines that a shell reads by `.`, for the owner's eyes only: there are keys among them. */
export async function writeEnvFile(file: string, settings: Record<string, string>): Promise<void> {
  const lines = Object.entries(settings).map(([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'\n`);
  await writeFile(file, lines.join(""), { mode: 0o600 });
}
