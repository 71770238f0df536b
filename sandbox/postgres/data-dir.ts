import { execFile } from "node:child_process";
import { chown, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { isAlive } from "@/sandbox/is-alive";
import { type PostgresBinaries, temporaryFolder } from "@/sandbox/postgres/binaries";

const run = promisify(execFile);

export type DataDir = { path: string; remove(): Promise<void> };

/** A new data directory of our own, below a 0755 folder of the temporary folder. `remove` deletes it. */
export async function temporaryDataDir(binaries: PostgresBinaries): Promise<DataDir> {
  await removeLeftovers();
  const folder = await mkdtemp(path.join(await temporaryFolder(), `${ourPrefix()}${process.pid}-`));
  await copyPristine(binaries, folder);
  return { path: path.join(folder, "data"), remove: () => rm(folder, { recursive: true, force: true }) };
}

/** A data directory that stays: made when it is not there, used as it is when it is. */
export async function persistentDataDir(binaries: PostgresBinaries, folder: string): Promise<DataDir> {
  const data = path.join(path.resolve(folder), "data");
  if ((await stat(data).catch(() => undefined)) === undefined) {
    await mkdir(folder, { recursive: true, mode: 0o755 });
    await copyPristine(binaries, path.resolve(folder));
  }
  return { path: data, remove: async () => undefined };
}

/** Copied by the user that will run the server, so that every file is his. */
async function copyPristine({ pristineDataDir, user }: PostgresBinaries, folder: string): Promise<void> {
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  await run("cp", ["-R", pristineDataDir, path.join(folder, "data")], { ...user, cwd: "/" });
}

/** The host is part of the name, so that containers which share a temporary folder leave each other's alone. */
function ourPrefix(): string {
  return `snaptrade-postgres-${hostname().replace(/[^A-Za-z0-9]/g, "")}-`;
}

/** A killed owner cannot clean up. Its server has ended by itself (server-process.ts); only files are left. */
async function removeLeftovers(): Promise<void> {
  const parent = await temporaryFolder();
  for (const name of await readdir(parent)) {
    if (!name.startsWith(ourPrefix())) continue;
    const owner = Number.parseInt(name.slice(ourPrefix().length), 10);
    if (Number.isInteger(owner) && !isAlive(owner)) await rm(path.join(parent, name), { recursive: true, force: true });
  }
}
