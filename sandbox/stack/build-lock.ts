import { link, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive } from "@/sandbox/is-alive";

/** A build takes seconds. An older lock is a dead process's whose id somebody else has by now. */
const STALE_MS = 10 * 60_000;

/**
 * Does the work while holding a lock that others of this machine respect: a file with the holder's process id. It is
 * linked into place, so that it never stands there half written; the lock of a dead process is taken over.
 */
export async function withLock<T>(file: string, stopped: () => boolean, work: () => Promise<T>): Promise<T> {
  const own = `${file}.${process.pid}`;
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(own, String(process.pid));
  try {
    while (!(await take(own, file))) {
      if (stopped()) throw new Error("Stopped while waiting for another build.");
      await sleep(200);
    }
  } finally {
    await rm(own, { force: true });
  }
  try {
    return await work();
  } finally {
    await rm(file, { force: true });
  }
}

async function take(own: string, file: string): Promise<boolean> {
  try {
    await link(own, file);
    return true;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  const holder = Number(await readFile(file, "utf8").catch(() => ""));
  const heldSince = (await stat(file).catch(() => undefined))?.mtimeMs ?? Date.now();
  const stale = (holder > 0 && !isAlive(holder)) || Date.now() - heldSince > STALE_MS;
  if (stale) await rm(file, { force: true });
  return false;
}
