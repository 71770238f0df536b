import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { spawnTied } from "@/sandbox/server-process";
import { NEXT, PROJECT } from "@/sandbox/stack/build-app";
import { withLock } from "@/sandbox/stack/build-lock";
import type { Closers } from "@/sandbox/stack/closers";
import { endGroup } from "@/sandbox/stack/end-group";

/** Inside the checkout, so that packages are found as the app finds them: in the one `node_modules` above. */
export const APP_COPY = path.join(PROJECT, ".sandbox/intake-app");
const BUILT_FROM = path.join(APP_COPY, "BUILT_FROM");

const SOURCES = ["app", "lib", "instrumentation.ts", "next.config.ts", "tsconfig.json", "package.json"];
const ROUTES = [import.meta.resolve("./routes/bare.ts"), import.meta.resolve("./routes/bare-plus-one.ts")].map((url) =>
  fileURLToPath(url),
);

/**
 * Builds a copy of the app that has the two baseline routes besides: the product never has them. What stands there is
 * taken if it was built from the same texts.
 * @throws when the build fails; its output has said why
 */
export async function buildWithRoutes(closers: Closers): Promise<void> {
  await withLock(path.join(PROJECT, ".sandbox/intake-app.lock"), closers.isClosing, async () => {
    const sources = [...SOURCES, "package-lock.json"].map((name) => path.join(PROJECT, name));
    const digest = await digestOf([...sources, ...ROUTES]);
    if ((await readFile(BUILT_FROM, "utf8").catch(() => "")) === digest) return;
    await copySources();
    await build(closers);
    await writeFile(BUILT_FROM, digest);
  });
}

async function copySources(): Promise<void> {
  await rm(APP_COPY, { recursive: true, force: true });
  for (const name of SOURCES) await cp(path.join(PROJECT, name), path.join(APP_COPY, name), { recursive: true });
  for (const file of ROUTES) {
    const folder = path.join(APP_COPY, "app/api/bench", path.parse(file).name);
    await mkdir(folder, { recursive: true });
    await cp(file, path.join(folder, "route.ts"));
  }
}

async function build(closers: Closers): Promise<void> {
  process.stderr.write("The app with the baseline routes: building (next build) ...\n");
  const env: NodeJS.ProcessEnv = { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" };
  const built = spawnTied(process.execPath, [NEXT, "build"], { cwd: APP_COPY, env });
  built.stdout.pipe(process.stderr, { end: false });
  built.stderr.pipe(process.stderr, { end: false });
  closers.add("next build", () => endGroup(built));
  await built.exited;
  if (built.child.exitCode !== 0) throw new Error("next build failed: see its output above.");
}

async function digestOf(places: readonly string[]): Promise<string> {
  const digest = createHash("sha256");
  async function add(place: string): Promise<void> {
    const entries = await readdir(place).catch(() => undefined);
    if (entries === undefined) digest.update(`${path.relative(PROJECT, place)}\0`).update(await readFile(place));
    else for (const entry of entries.sort()) await add(path.join(place, entry));
  }
  for (const place of places) await add(place);
  return digest.digest("hex");
}
