import { readdir, stat, utimes } from "node:fs/promises";
import path from "node:path";
import { spawnTied } from "@/sandbox/server-process";
import { withLock } from "@/sandbox/stack/build-lock";
import type { Closers } from "@/sandbox/stack/closers";
import { endGroup } from "@/sandbox/stack/end-group";

export const PROJECT = path.resolve(import.meta.dirname, "../..");
export const NEXT = path.join(PROJECT, "node_modules/next/dist/bin/next");

/** Everything that `next build` makes the app from. */
const SOURCES = ["app", "lib", "instrumentation.ts", "next.config.ts", "tsconfig.json", "package-lock.json"];
const BUILD_ID = path.join(PROJECT, ".next/BUILD_ID");

/**
 * Builds the app unless the build that is there is newer than all sources. Two sandboxes of one checkout build once: the
 * second waits for the first. What the build says goes to stderr.
 * @throws when the build fails; its output has said why
 */
export async function ensureBuilt(closers: Closers): Promise<void> {
  if (await isBuilt()) return;
  await withLock(path.join(PROJECT, ".sandbox/build.lock"), closers.isClosing, async () => {
    if (await isBuilt()) return;
    const startedAt = new Date();
    await build(closers);
    // A source that was edited meanwhile is newer than the build, though the build was written later.
    await utimes(BUILD_ID, startedAt, startedAt);
  });
}

async function build(closers: Closers): Promise<void> {
  process.stderr.write("The app: building (next build) ...\n");
  const env: NodeJS.ProcessEnv = { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" };
  const built = spawnTied(process.execPath, [NEXT, "build"], { cwd: PROJECT, env });
  built.stdout.pipe(process.stderr, { end: false });
  built.stderr.pipe(process.stderr, { end: false });
  closers.add("next build", () => endGroup(built));
  await built.exited;
  if (built.child.exitCode !== 0 && !closers.isClosing()) throw new Error("next build failed: see its output above.");
}

async function isBuilt(): Promise<boolean> {
  const built = await modifiedAt(BUILD_ID);
  if (built === undefined) return false;
  const newest = await Promise.all(SOURCES.map((name) => newestWithin(path.join(PROJECT, name))));
  return newest.every((time) => time <= built);
}

/** A folder counts too: a file that was removed leaves its trace there. */
async function newestWithin(place: string): Promise<number> {
  const own = (await modifiedAt(place)) ?? 0;
  const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
  const times = await Promise.all(entries.map((entry) => newestWithin(path.join(place, entry.name))));
  return Math.max(own, ...times);
}

async function modifiedAt(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.mtimeMs;
}
