import { execFile } from "node:child_process";
import { chown, mkdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { makeOwnFolder } from "@/sandbox/own-folders";
import { type PostgresBinaries, temporaryFolder } from "@/sandbox/postgres/binaries";

const run = promisify(execFile);

export type DataDir = { path: string; remove(): Promise<void> };

/** A new data directory of our own, below a 0755 folder of the temporary folder. `remove` deletes it. */
export async function temporaryDataDir(binaries: PostgresBinaries): Promise<DataDir> {
  const folder = await makeOwnFolder(await temporaryFolder(), "postgres");
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
