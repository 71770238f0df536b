import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { decryptSecret } from "@/lib/secrets";
import { findFreeBase } from "@/sandbox/stack/ports";
import { listeningPorts, type ProcessRef, processTree, stillRunning } from "@/tests/support/process-tree";

const PROJECT = path.resolve(import.meta.dirname, "../..");
const ACCOUNTS = 8;
/** Ready within 180 s, the build included. */
const READY_MS = 180_000;
const STOP_MS = 15_000;
/** Of the second sandbox; the quotation mark is for the file that shells read. */
const SECRETS_KEY = randomBytes(32);
const CRON_SECRET = "it's the second one";

const readyLine = z.strictObject({
  ready: z.literal(true),
  app: z.url(),
  redis: z.strictObject({ url: z.url(), token: z.string() }),
  qstash: z.strictObject({
    url: z.url(),
    token: z.string(),
    currentSigningKey: z.string(),
    nextSigningKey: z.string(),
  }),
  supabase: z.strictObject({
    url: z.url(),
    secretKey: z.string(),
    publishableKey: z.string(),
    databaseUrl: z.string(),
  }),
  snaptrade: z.strictObject({
    url: z.url(),
    clientId: z.literal("SANDBOXCLIENT"),
    consumerKey: z.literal("sandbox-consumer-key"),
  }),
  cronSecret: z.string(),
  pids: z.strictObject({ app: z.number() }),
  envFile: z.string(),
  user: z.strictObject({ userId: z.literal("user-0000"), userSecret: z.string() }),
});
type Ready = z.infer<typeof readyLine>;
type Sandbox = { base: number; child: ChildProcess; pid: number; ready: Ready; stdout: () => string };

/** Also those whose start went wrong. */
const started: ChildProcess[] = [];

async function startSandbox(...options: string[]): Promise<Sandbox> {
  const base = await findFreeBase();
  const args = ["run", "--silent", "sandbox", "--", "--json", "--port-base", String(base), ...options];
  const child = spawn("npm", args, { cwd: PROJECT, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  await vi.waitFor(
    () => {
      if (child.exitCode !== null) throw new Error(`The sandbox ended with ${child.exitCode}:\n${stderr}`);
      expect(stdout, stderr).toContain("\n");
    },
    { timeout: READY_MS, interval: 100 },
  );
  return { base, child, pid: child.pid ?? 0, ready: readyLine.parse(JSON.parse(stdout)), stdout: () => stdout };
}

async function json(url: string, init?: RequestInit): Promise<unknown> {
  const response = await fetch(url, init);
  return response.json();
}

/** The process that runs sandbox.ts: the app is its child. */
function owner(tree: readonly ProcessRef[], { pids }: Ready): number {
  const app = tree.find(({ pid }) => pid === pids.app);
  if (app === undefined) throw new Error(`The app, process ${pids.app}, does not belong to the sandbox`);
  return app.parent;
}

describe.runIf(process.platform === "linux")("npm run sandbox", () => {
  let sandbox: Sandbox;
  let second: Sandbox;
  let sql: postgres.Sql;

  beforeAll(async () => {
    // At once, from one checkout: one of them builds, the other waits for it.
    [sandbox, second] = await Promise.all([
      startSandbox("--accounts", String(ACCOUNTS)),
      startSandbox(
        ...["--accounts", "2", "--fresh", "--env", "SNAPTRADE_MIN_RUN_SPACING=1s"],
        ...["--env", `SNAPTRADE_SECRETS_KEY=${SECRETS_KEY.toString("base64")}`, "--env", `CRON_SECRET=${CRON_SECRET}`],
      ),
    ]);
    sql = postgres(sandbox.ready.supabase.databaseUrl, { max: 1 });
  }, READY_MS + 30_000);

  afterAll(async () => {
    await sql?.end({ timeout: 1 });
    for (const child of started) {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
      process.kill(-child.pid, "SIGINT");
      await once(child, "exit");
    }
  });

  it("prints one line of JSON on stdout when it is ready, and nothing else", () => {
    expect(sandbox.stdout()).toMatch(/^\{.*\}\n$/);
    const { base, ready } = sandbox;
    const ports = [ready.app, ready.supabase.url, ready.qstash.url, ready.redis.url, ready.snaptrade.url].map((url) =>
      Number(new URL(url).port),
    );
    expect(ports).toEqual([base, base + 1, base + 2, base + 3, base + 4]);
  });

  it("listens on its ten ports and nowhere else, while another one runs beside it", () => {
    for (const { base, pid } of [sandbox, second]) {
      const ports = listeningPorts(processTree(pid));
      expect(ports).toEqual(expect.arrayContaining([base, base + 1, base + 2, base + 3, base + 4, base + 5]));
      expect(ports.filter((port) => port < base || port > base + 9)).toEqual([]);
    }
  });

  it("seeds accounts whose upstream data is stored and fresh, without a call to anybody", async () => {
    const [seeded] = await sql`
      select count(*)::int as accounts, count(distinct connection_id)::int as connections,
        count(distinct user_id)::int as users,
        bool_and(holdings_synced_at > now() - interval '1 hour' and transactions_synced_at > now() - interval '1 hour'
          and transactions_watermark = (transactions_synced_at at time zone 'UTC')::date and detail_read_at is not null) as fresh,
        bool_and(exists (select from snaptrade_positions p where p.account_id = a.account_id)
          and exists (select from snaptrade_transactions t where t.account_id = a.account_id)) as stored
      from snaptrade_accounts a`;
    expect(seeded).toEqual({
      accounts: ACCOUNTS,
      connections: ACCOUNTS / 2,
      users: ACCOUNTS / 2,
      fresh: true,
      stored: true,
    });
    const { snaptrade, redis, supabase, qstash } = sandbox.ready;
    expect(await json(`${snaptrade.url}/_sim/state`)).toEqual({ calls: [], count429: 0, maxCallsInWindow: 0 });
    for (const { url } of [redis, supabase, qstash]) {
      expect(await json(`${url}/_sim/state`)).toMatchObject({ requests: 0 });
    }
  });

  it("gives accounts that were never synced with --fresh", async () => {
    const other = postgres(second.ready.supabase.databaseUrl, { max: 1 });
    try {
      const rows = await other`
        select account_id, holdings_synced_at, transactions_synced_at, transactions_watermark,
          (select count(*)::int from snaptrade_positions p where p.account_id = a.account_id) as positions
        from snaptrade_accounts a order by 1`;
      const never = {
        holdings_synced_at: null,
        transactions_synced_at: null,
        transactions_watermark: null,
        positions: 0,
      };
      expect(rows.map((row) => ({ ...row }))).toEqual([
        { account_id: "acct-0000", ...never },
        { account_id: "acct-0001", ...never },
      ]);
    } finally {
      await other.end();
    }
  });

  it("runs an emitted event to its end, and a run of unchanged data writes no row", async () => {
    const { snaptrade } = sandbox.ready;
    const event = { eventType: "ACCOUNT_HOLDINGS_UPDATED", accountId: "acct-0005" };
    const emitted = await json(`${snaptrade.url}/_sim/emit`, { method: "POST", body: JSON.stringify(event) });
    expect(emitted).toMatchObject({ status: 200, body: { outcome: "accepted" } });
    const seededAt = (table: string) =>
      sql`select max(updated_at) as at from ${sql(table)} where account_id = 'acct-0005'`;
    await vi.waitFor(
      async () => {
        const [job] = await sql`select status, started_at from snaptrade_sync_jobs where account_id = 'acct-0005'`;
        expect(job?.status).toBe("done");
        for (const table of ["snaptrade_positions", "snaptrade_balances", "snaptrade_orders"]) {
          const [row] = await seededAt(table);
          expect(row?.at < job?.started_at, table).toBe(true);
        }
      },
      { timeout: 20_000, interval: 100 },
    );
  });

  it("encrypts the seeded users' secrets with the key that it is given", async () => {
    const other = postgres(second.ready.supabase.databaseUrl, { max: 1 });
    try {
      const [row] = await other`select secret_ciphertext from snaptrade_users`;
      const { userId, userSecret } = second.ready.user;
      expect(decryptSecret(String(row?.secret_ciphertext), [SECRETS_KEY], userId)).toBe(userSecret);
    } finally {
      await other.end();
    }
  });

  it("lets operators work by the file that holds the app's environment, which only its owner may read", async () => {
    const { envFile, user } = second.ready;
    expect((await stat(envFile)).mode & 0o777).toBe(0o600);
    const work =
      'set -a; . "$1"; set +a; npm run -s ops -- jobs --json; printf "%s" "$2" | npm run -s users -- add "$3" --secret-stdin --json; echo "$CRON_SECRET"';
    const { PATH = "", HOME = "" } = process.env;
    const shell = promisify(execFile)("sh", ["-c", work, "sh", envFile, user.userSecret, user.userId], {
      cwd: PROJECT,
      env: { PATH, HOME, NODE_ENV: "test" },
    });
    const [jobs = "", added = "", cronSecret] = (await shell).stdout.split("\n");
    expect(JSON.parse(jobs)).toEqual({ jobs: [] });
    expect(JSON.parse(added)).toMatchObject({ userId: "user-0000", before: "stored", accounts: 2 });
    expect(cronSecret).toBe(CRON_SECRET);
  }, 60_000);

  it("starts the app again when it dies", async () => {
    const { ready } = sandbox;
    process.kill(ready.pids.app, "SIGKILL");
    await vi.waitFor(() => expect(() => process.kill(ready.pids.app, 0)).toThrow(), { timeout: 5_000 });
    await vi.waitFor(async () => expect(await json(`${ready.app}/api/health`)).toEqual({ status: "up" }), {
      timeout: 25_000,
      interval: 100,
    });
  });

  it(
    "ends everything within 15 s of SIGINT to its process group",
    async () => {
      const tree = processTree(sandbox.pid);
      expect(tree.map(({ command }) => command)).toContain("postgres");
      process.kill(-sandbox.pid, "SIGINT");
      await vi.waitFor(() => expect(stillRunning(tree)).toEqual([]), { timeout: STOP_MS, interval: 100 });
    },
    STOP_MS + 10_000,
  );

  it(
    "leaves no server behind when its own process is killed",
    async () => {
      const tree = processTree(second.pid);
      process.kill(owner(tree, second.ready), "SIGKILL");
      await vi.waitFor(() => expect(stillRunning(tree)).toEqual([]), { timeout: STOP_MS, interval: 100 });
    },
    STOP_MS + 10_000,
  );
});
