import { randomUUID } from "node:crypto";
import { performance } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EVENT_EFFECTS } from "@/lib/webhook/event-effects";
import { type Grown, growTables, type Storm, storm } from "@/tests/long/grown-tables";
import { freshDatabase, type LocalDatabase } from "@/tests/support/local-database";
import { movesOfOneKey } from "@/tests/support/sql-moves";
import { type PlanMode, type Reads, readsOf } from "@/tests/support/sql-reads";

/** Events and jobs; a fifth as many accounts. GROWTH_ROWS=50000 for a quick look. */
const ROWS = Number(process.env.GROWTH_ROWS ?? 1_000_000);

let database: LocalDatabase;
let grown: Grown;
let now: Storm;
type Figure = { what: string; entries: number; pages: number; ms: number };
const figures: Figure[] = [];

beforeAll(async () => {
  database = await freshDatabase();
  grown = await growTables(database.sql, ROWS);
  now = await storm(database.sql, grown);
}, 600_000);
afterAll(async () => {
  process.stdout.write(`\n${figureTable()}\n\n`);
  await database.close();
});

/** One call, its figures kept. The guard of the sweep and the heartbeat are a table of two rows: no index serves it better. */
async function measured(what: string, name: string, request: object, plans: PlanMode): Promise<Reads> {
  const startedAt = performance.now();
  const reads = await readsOf(database.sql, name, request, plans);
  const { entries, pages } = reads;
  figures.push({ what, entries, pages, ms: performance.now() - startedAt });
  return { ...reads, seq: reads.seq.filter(({ table }) => table !== "snaptrade_service_state") };
}

/** The worst of each call. */
function figureTable(): string {
  const lines = [...new Set(figures.map(({ what }) => what))].map((what) => {
    const all = figures.filter((figure) => figure.what === what);
    const most = (pick: (figure: Figure) => number) => String(Math.round(Math.max(...all.map(pick)))).padStart(8);
    return `${what.padEnd(75)} ${most((f) => f.entries)}${most((f) => f.pages)}${most((f) => f.ms)}`;
  });
  const { events, accounts, users } = grown;
  const heading = `${events} events and jobs, ${accounts} accounts, ${users} users, ${now.queued} queued`;
  return [`${heading.padEnd(75)}  entries   pages      ms`, ...lines].join("\n");
}

const key = (s: Storm["subjects"]) => ({
  jobId: s.jobOf(s.running.account, "transactions"),
  workType: "transactions",
  accountId: s.running.account,
  fence: s.running.fence,
});
const trades = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ activityId: `new-${i}`, fingerprint: `new-${i}`, raw: "{}" }));
const pass = { startDate: null, endDate: "2026-01-01", oldestDate: "2026-01-01", offset: 0, pages: 0 };
const lastPage = { cursor: null, again: pass, watermark: null, pages: 1, pagesLeft: 0, parts: {} };

/** What stands beside the moves of one key, and is as cheap. */
const alsoCheap: [string, string, () => object][] = [
  [
    "a page of transactions, and the question whether younger events wait",
    "snaptrade_commit_transactions",
    () => ({ ...key(now.subjects), ...lastPage, rows: trades(10) }),
  ],
  ["the start of a sweep", "snaptrade_start_sweep", () => ({ sweepId: "other", guardMs: 300_000 })],
  ["the end of a sweep", "snaptrade_end_sweep", () => ({ sweepId: "sweep" })],
  ["a user that was listed", "snaptrade_mark_listed", () => ({ userId: now.subjects.idle.user })],
];

/** [what, function, request, most entries of indexes]: bounded by what they are asked for or by what is open. */
const walks: [string, string, () => object, () => number][] = [
  [
    "a page of stale keys",
    "snaptrade_list_stale",
    () => ({
      sweepId: "sweep",
      cursor: null,
      limit: 200,
      staleMs: { holdings: 129_600_000, transactions: 129_600_000 },
    }),
    () => 200 * 40,
  ],
  [
    "the end of a sweep that finds nothing stale",
    "snaptrade_list_stale",
    () => ({ sweepId: "sweep", cursor: null, limit: 200, staleMs: { holdings: 1e10, transactions: 1e10 } }),
    () => 2 * grown.accounts + 100,
  ],
  ["overdue jobs, none yet", "snaptrade_list_overdue", () => ({ cursor: null, limit: 500 }), () => now.queued + 1000],
  ["the gauges", "snaptrade_read_health", () => ({}), () => 4 * now.queued + 2 * now.running + 2 * now.dead],
  ["pruning", "snaptrade_end_tick", () => ({ retentionMs: 30 * 86_400_000, limit: 5_000 }), () => 4 * 5_000 + 100],
  ["users to list", "snaptrade_users_to_list", () => ({ limit: 20 }), () => 2 * now.waiting + 100],
  ["the newest jobs", "snaptrade_list_jobs", () => ({ limit: 50 }), () => 1_000],
  [
    "jobs of a week ago",
    "snaptrade_list_jobs",
    () => ({
      before: { createdAt: new Date(Date.now() - 7 * 86_400_000).toISOString(), jobId: randomUUID() },
      limit: 50,
    }),
    () => 1_000,
  ],
  ["an account's jobs", "snaptrade_list_jobs", () => ({ accountId: now.subjects.queued, limit: 50 }), () => 100],
  [
    "jobs by their ids",
    "snaptrade_list_jobs",
    () => ({ jobIds: [now.subjects.jobOf(now.subjects.queued)], limit: 1 }),
    () => 100,
  ],
  ["queued jobs", "snaptrade_list_jobs", () => ({ status: "queued", limit: 50 }), () => 2 * now.queued + 1_000],
  ["running jobs", "snaptrade_list_jobs", () => ({ status: "running", limit: 50 }), () => 2 * now.running + 1_000],
  ["dead jobs", "snaptrade_list_jobs", () => ({ status: "dead", limit: 200 }), () => 2 * now.dead + 2_000],
  [
    "what waits",
    "snaptrade_release_waiting",
    () => ({ limit: 100, spacingMs: 0, effects: EVENT_EFFECTS }),
    () => 6 * now.waiting,
  ],
];

const MODES: PlanMode[] = ["auto", "force_custom_plan", "force_generic_plan"];

describe.each(["statistics of a quiet hour", "statistics of the storm"])("%s", (state) => {
  beforeAll(async () => {
    if (state === "statistics of the storm") await database.sql.unsafe("analyze");
  }, 120_000);

  test("every move of one key reads a handful of rows, however many events, jobs and accounts there are", async () => {
    for (const [what, name, request] of [...movesOfOneKey(now.subjects), ...alsoCheap]) {
      for (const plans of MODES) {
        const { seq, entries, pages } = await measured(what, name, request(), plans);
        expect.soft(seq, `${what}, ${plans}`).toEqual([]);
        expect.soft(entries, `index entries of ${what}, ${plans}`).toBeLessThan(100);
        expect.soft(pages, `pages of ${what}, ${plans}`).toBeLessThan(1_000);
      }
    }
  });

  test("every walk reads what it is asked for or what is open, by an index, and nothing of what is settled", async () => {
    for (const [what, name, request, most] of walks) {
      for (const plans of MODES) {
        const { seq, entries } = await measured(what, name, request(), plans);
        expect.soft(seq, `${what}, ${plans}`).toEqual([]);
        expect.soft(entries, `index entries of ${what}, ${plans}`).toBeLessThan(most());
      }
    }
  });
});
