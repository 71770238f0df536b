import { BUDGET_MUTANTS } from "@/tests/mutants/budget-mutants";
import type { Mutant } from "@/tests/mutants/mutant";

const INTAKE = "lib/webhook/receive-webhook.ts";
const RUN = "lib/jobs/run-job.ts";
const SCRIPTS = "lib/guards/lua-scripts.ts";
const LATE_EVENTS = "tests/integration/service/late-events.test.ts";
const COALESCING = "tests/integration/service/coalescing.test.ts";
const TAKEOVER = "tests/integration/service/takeover.test.ts";
const HISTORIES = "tests/histories/histories.test.ts";
const DIFFERENTIAL = "tests/histories/differential.test.ts";
const CLAIMS = "tests/integration/service/claims.test.ts";

/** The near-misses of the protocol: each loses an update, or the budget, and each must turn a test red. */
export const MUTANTS: Mutant[] = [
  ...BUDGET_MUTANTS,
  {
    name: "settle after the publish, without comparing",
    edits: [
      {
        file: INTAKE,
        right: "  const settled = isAway(claimed)",
        wrong: "  await publishJobs(service, accepted.publish, AWAY);\n  const settled = isAway(claimed)",
      },
      {
        file: INTAKE,
        right: '  await publishJobs(service, accepted.publish, settled);\n  await service.reach("intake:published");',
        wrong: '  await publishJobs(service, [], settled);\n  await service.reach("intake:published");',
      },
      { file: SCRIPTS, right: "KEYS[5] ~= '' and redis.call('GET', KEYS[5]) == ARGV[5]", wrong: "KEYS[5] ~= ''" },
    ],
    tests: [COALESCING, "tests/integration/service/interleavings.test.ts", DIFFERENTIAL],
  },
  {
    name: "one index over both states",
    edits: [
      {
        file: "supabase/migrations/20260517_asked_again_reads_the_newest.sql",
        right: "account_id = p_account_id and status = 'queued' for update;",
        wrong: "account_id = p_account_id and status in ('queued', 'running') for update;",
      },
    ],
    tests: [COALESCING, DIFFERENTIAL],
  },
  {
    name: "queued key released at the end",
    edits: [
      {
        file: RUN,
        right: "  if (!(await service.guards.clearAccountQueued(job))) return giveBack(service, run, begun);\n",
        wrong: "",
      },
    ],
    tests: [COALESCING, HISTORIES],
  },
  {
    name: "no fence",
    edits: [
      {
        file: "supabase/migrations/20260506_begin_job.sql",
        right: "    and status = 'running' and fence = (request ->> 'fence')::bigint for update;",
        wrong: "    and status = 'running' for update;",
      },
    ],
    tests: [TAKEOVER, DIFFERENTIAL],
  },
  {
    name: "busy counted as done",
    edits: [
      {
        file: "supabase/migrations/20260518_empty_orders_are_doubted.sql",
        right: "  if v_other.lease_until > v_now then\n",
        wrong:
          "  if v_other.lease_until > v_now then\n    update public.snaptrade_sync_jobs set status = 'done', finished_at = v_now where id = v_job.id and status = 'queued';\n",
      },
    ],
    tests: [COALESCING, TAKEOVER, DIFFERENTIAL],
  },
  {
    name: "no verify after a coalesced answer",
    edits: [{ file: INTAKE, right: "    after(() => verifyCoalesced(service, event, row, claim));\n", wrong: "" }],
    tests: [COALESCING, HISTORIES],
  },
  {
    name: "a pending claim answered as duplicate",
    edits: [
      {
        file: SCRIPTS,
        right: "if value == 'accepted' then",
        wrong: "if value == 'accepted' or value ~= ARGV[1] then",
      },
    ],
    tests: [CLAIMS, DIFFERENTIAL],
  },
  {
    name: "a lost reply of the claim read as somebody else's",
    edits: [
      {
        file: SCRIPTS,
        right:
          "local value = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) and ARGV[1] or redis.call('GET', KEYS[1])",
        wrong: "local value = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) and ARGV[1] or 'accepted'",
      },
    ],
    tests: [CLAIMS, DIFFERENTIAL],
  },
  {
    name: "a failed part of an answer written as empty",
    edits: [
      {
        file: "lib/jobs/read-holdings.ts",
        right: `  if (balances !== null && !hadFailed("balances")) {
    take(balances, begun.storedBalances, () => {
      holdings.balances = balances;
    });
  }`,
        wrong: "  holdings.balances = balances ?? [];",
      },
    ],
    tests: ["tests/integration/service/run-parts.test.ts", HISTORIES],
  },
  {
    name: "a job of an account with a failed part behind the queued key",
    edits: [
      {
        file: SCRIPTS,
        right: "if KEYS[5] ~= '' and ARGV[8] == '' then",
        wrong: "if KEYS[5] ~= '' and ARGV[8] == '' and redis.call('GET', KEYS[5]) == ARGV[5] then",
      },
    ],
    tests: [COALESCING],
  },
  {
    name: "a part that had failed upstream believed, because an event of meanwhile says that all is well",
    edits: [
      {
        file: "lib/jobs/read-holdings.ts",
        right: "const hadFailed = (part: string) => begun.failedParts.includes(part);",
        wrong: "const hadFailed = (_part: string) => false;",
      },
    ],
    tests: ["tests/integration/service/run-parts.test.ts"],
  },
  {
    name: "orders that come empty believed",
    edits: [
      {
        file: "lib/jobs/read-holdings.ts",
        right: "    take(orders, begun.storedOrders, () => {",
        wrong: "    take(orders, false, () => {",
      },
    ],
    tests: ["tests/integration/service/empty-orders.test.ts"],
  },
  {
    name: "a failed part of an older event told after a newer all-clear",
    edits: [
      {
        file: "supabase/migrations/20260516_late_events_undo_nothing.sql",
        right: "and (failed_parts_at is null or failed_parts_at <= v_at);",
        wrong:
          "and (failed_parts_at is null or failed_parts_at <= v_at) and (failed_parts <> '{}' or p_event -> 'failedParts' <> '[]');",
      },
    ],
    tests: [LATE_EVENTS],
  },
  {
    name: "a 404 closes an account that an event of meanwhile announces",
    edits: [
      {
        file: "supabase/migrations/20260516_late_events_undo_nothing.sql",
        right: "and greatest(a.state_at, c.state_at) > v_job.started_at - interval '1 minute') then",
        wrong: "and false) then",
      },
    ],
    tests: [LATE_EVENTS],
  },
  {
    name: "a job that nobody's event asked for ends with the old pass that it found",
    edits: [
      {
        file: "supabase/migrations/20260517_asked_again_reads_the_newest.sql",
        right: "v_job.created_at >= v_began or ",
        wrong: "",
      },
    ],
    tests: ["tests/integration/service/transactions-asked-again.test.ts"],
  },
  {
    name: "a listing that begins with spare calls, and is done without slots for what it found",
    edits: [
      { file: "lib/jobs/list-users.ts", right: "{ spares: false }", wrong: "{ spares: true }" },
      { file: "lib/jobs/list-users.ts", right: "if (bulk.taken === behind.length) ", wrong: "" },
    ],
    tests: ["tests/integration/service/listing-faults.test.ts"],
  },
  {
    name: "an event in the middle of a long reading forgotten",
    edits: [{ file: "lib/jobs/read-transactions.ts", right: "      again,\n", wrong: "      again: null,\n" }],
    tests: ["tests/integration/service/transactions.test.ts", HISTORIES],
  },
];
