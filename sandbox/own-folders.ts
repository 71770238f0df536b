import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { isAlive } from "@/sandbox/is-alive";

/**
 * A new folder of this process in `parent`. Those of the same name whose process is dead are removed first: a killed
 * process cannot clean up after itself. The host is part of the name, so that containers which share a temporary folder
 * leave each other's alone.
 */
export async function makeOwnFolder(parent: string, name: string): Promise<string> {
  const prefix = `snaptrade-${name}-${hostname().replace(/[^A-Za-z0-9]/g, "")}-`;
  for (const entry of await readdir(parent)) {
    if (!entry.startsWith(prefix)) continue;
    const owner = Number.parseInt(entry.slice(prefix.length), 10);
    if (Number.isInteger(owner) && !isAlive(owner))
      await rm(path.join(parent, entry), { recursive: true, force: true });
  }
  return mkdtemp(path.join(parent, `${prefix}${process.pid}-`));
}
