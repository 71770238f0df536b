import type { Mutant } from "@/tests/mutants/mutant";

const SCRIPTS = "lib/guards/lua-scripts.ts";
const BUDGET = "lib/guards/lua-budget.ts";
const BUDGET_TEST = "tests/integration/service/budget.test.ts";
const DIFFERENTIAL = "tests/histories/differential.test.ts";

/** The near-misses of the budget: each passes the provider's limit, or wastes it. */
export const BUDGET_MUTANTS: Mutant[] = [
  {
    name: "a cooldown shortened by a later 429",
    edits: [
      {
        file: SCRIPTS,
        right: "  if now + length > tonumber(redis.call('GET', key) or '0') then",
        wrong: "  if length > 0 then",
      },
    ],
    tests: [BUDGET_TEST, DIFFERENTIAL],
  },
  {
    name: "a budget that is not charged",
    edits: [
      {
        file: BUDGET,
        right: "  move(after)\n  return math.max(base, now), after\n",
        wrong: "  return math.max(base, now), after\n",
      },
    ],
    tests: [BUDGET_TEST, DIFFERENTIAL],
  },
  {
    name: "a reservation charged twice",
    edits: [
      { file: BUDGET, right: "  if had and had >= now - late then return had, hadCalls, false end\n", wrong: "" },
    ],
    tests: [BUDGET_TEST, DIFFERENTIAL],
  },
  {
    name: "a slot of later that the pointer does not pass",
    edits: [
      {
        file: BUDGET,
        right: "  local base = gap(math.max(tat, from), math.max(perCall, calls * perCall - slack))\n",
        wrong: "  local base = math.max(tat, from)\n",
      },
    ],
    tests: [BUDGET_TEST, DIFFERENTIAL],
  },
  {
    name: "calls that come back for longer than their slot counts",
    edits: [
      { file: BUDGET, right: "  if at < now - late then return end\n", wrong: "" },
      { file: BUDGET, right: "  if tonumber(at) >= now - late then\n", wrong: "  if tonumber(at) then\n" },
    ],
    tests: ["tests/integration/service/budget-spare.test.ts"],
  },
  {
    name: "a spare slot that counts anew",
    edits: [
      {
        file: BUDGET,
        right: "  if isSpare then return takeSpare(calls), 0 end\n",
        wrong: "  if isSpare then takeSpare(calls) return now, 0 end\n",
      },
    ],
    tests: ["tests/integration/service/budget-spare.test.ts", DIFFERENTIAL],
  },
  {
    name: "spare calls that nobody counts when they are made",
    edits: [
      {
        file: SCRIPTS,
        right: "spend(calls, at >= now - late and isSpareSlot(own))\n",
        wrong: "if at < now - late or not isSpareSlot(own) then spend(calls) end\n",
      },
    ],
    tests: ["tests/integration/service/budget-spare-ceiling.test.ts", DIFFERENTIAL],
  },
];
