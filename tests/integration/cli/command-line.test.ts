import { spawn } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

const ROOT = new URL("../../../", import.meta.url).pathname;
/** A process takes a second and a half to load; on a busy machine much longer. */
const TIMEOUT = 120_000;

const jobList = z.object({ jobs: z.array(z.object({ jobId: z.string() })) });

let app: ServedApp<{ qstash: true; snaptrade: { accounts: number; rateLimitPerMinute: number } }>;

beforeAll(async () => {
  app = await serveApp({ qstash: true, snaptrade: { accounts: 2, rateLimitPerMinute: 6000 } });
});
afterAll(() => app.close());

type Ran = { code: number | null; stdout: string; stderr: string };

/** The command as `npm run` starts it, with an environment of its own. */
function run(program: "users" | "ops", args: string[], given: { env?: Record<string, string>; stdin?: string } = {}) {
  return new Promise<Ran>((resolve, reject) => {
    const { PATH = "", HOME = "" } = process.env;
    const child = spawn(process.execPath, ["--import", "tsx", `lib/cli/${program}.ts`, ...args], {
      cwd: ROOT,
      env: { PATH, HOME, NODE_ENV: "test", ...given.env },
    });
    const ran: Ran = { code: null, stdout: "", stderr: "" };
    child.stdout.on("data", (chunk) => {
      ran.stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      ran.stderr += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ ...ran, code }));
    child.stdin.end(given.stdin ?? "");
  });
}

test.each(["users", "ops"] as const)(
  "npm run %s -- --help says what it does, without any setting",
  async (program) => {
    const { code, stdout } = await run(program, ["--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: npm run ${program} -- [options] [command]`);
    for (const name of program === "users"
      ? ["add", "import", "remove", "reencrypt"]
      : ["jobs", "dead", "replay", "pause", "resume", "sync"]) {
      expect(stdout).toMatch(new RegExp(`^  ${name} `, "m"));
    }
    expect(stdout).toContain("Exit codes: 0 done; 1 not done, or only in part");
  },
  TIMEOUT,
);

test(
  "--json puts one document on standard output: a user whose secret came by standard input, then its jobs",
  async () => {
    const { userSecret = "" } = app.stack.snaptrade.users()[0] ?? {};
    const { env } = app.stack;
    const added = await run("users", ["add", "user-0000", "--secret-stdin", "--json"], {
      env,
      stdin: `${userSecret}\n`,
    });
    expect(JSON.parse(added.stdout)).toMatchObject({ userId: "user-0000", created: true, accounts: 2, jobs: 4 });
    expect(added.code).toBe(0);
    expect(added.stdout + added.stderr).not.toContain(userSecret);

    const listed = await run("ops", ["jobs", "--account", "acct-0000", "--json"], { env });
    const stored = await app.stack.database.sql`select id from snaptrade_sync_jobs where account_id = 'acct-0000'`;
    const shown = jobList.parse(JSON.parse(listed.stdout)).jobs.map(({ jobId }) => jobId);
    expect(shown.toSorted()).toEqual(stored.map((row) => row.id).toSorted());
    expect(stored).toHaveLength(2);
    expect(listed.code).toBe(0);
  },
  TIMEOUT,
);

test(
  "a secret that came by an environment variable is stored; people read a sentence",
  async () => {
    const { userSecret = "" } = app.stack.snaptrade.users()[0] ?? {};
    const env = { ...app.stack.env, USER_SECRET: userSecret };
    const added = await run("users", ["add", "user-0000", "--secret-env", "USER_SECRET"], { env });
    expect(added.stdout).toMatch(/^user-0000 was known; its secret is replaced\. 1 connection, 2 accounts; .*\n$/);
    expect(added.code).toBe(0);
  },
  TIMEOUT,
);

test(
  "what was not done exits with 1, and its reason is the document",
  async () => {
    const { code, stdout, stderr } = await run("ops", ["sync", "acct-9999", "--json"], { env: app.stack.env });
    expect(JSON.parse(stdout)).toEqual({ error: expect.stringContaining("No account acct-9999") });
    expect(stderr).toContain("No account acct-9999");
    expect(code).toBe(1);
  },
  TIMEOUT,
);

test(
  "a file of users that cannot be read is named, in both ways, and exits with 2",
  async () => {
    const { code, stdout, stderr } = await run("users", ["import", "nowhere/users.csv", "--json"], {
      env: app.stack.env,
    });
    const said = `${ROOT}nowhere/users.csv could not be read: there is no such file.`;
    expect(JSON.parse(stdout)).toEqual({ error: said });
    expect(stderr).toContain(said);
    expect(code).toBe(2);
  },
  TIMEOUT,
);

test(
  "log lines never mix with the document: they go to standard error",
  async () => {
    // An account that still has its first jobs would be answered without Redis.
    await app.stack.database.sql`update snaptrade_sync_jobs set status = 'gone', lease_until = null, finished_at = now()
      where status in ('queued', 'running')`;
    const env = { ...app.stack.env, UPSTASH_REDIS_REST_URL: "http://127.0.0.1:9" };
    const { code, stdout, stderr } = await run("ops", ["sync", "acct-0001", "--json"], { env });
    expect(JSON.parse(stdout)).toMatchObject({ accountId: "acct-0001" });
    expect(stderr).toContain("Redis gave no answer");
    expect(code).toBe(0);
  },
  TIMEOUT,
);

test.each([
  ["an environment with faults, each named", "ops", ["jobs"], "SUPABASE_SECRET_KEY is not set"],
  ["a secret on the command line, which is not repeated", "users", ["add", "u-1", "--secret=marker"], "'--secret=...'"],
  ["a removal without --yes", "users", ["remove", "u-1"], "repeat it with --yes"],
] as const)(
  "wrong usage exits with 2 and says so in both ways: %s",
  async (_, program, args, said) => {
    const { code, stdout, stderr } = await run(program, [...args, "--json"]);
    expect(stderr).toContain(said);
    expect(JSON.parse(stdout)).toEqual({ error: expect.stringContaining(said) });
    expect(stdout + stderr).not.toContain("marker");
    expect(code).toBe(2);
  },
  TIMEOUT,
);
