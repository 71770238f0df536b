import type { Row } from "@/bench/report/row";
import { table } from "@/lib/cli/text";

/** "unmeasured": the machine was too busy in that row, or in the one beside it, and so made the figure itself. */
export type Target = { scenario: string; target: string; value: string; verdict: "met" | "missed" | "unmeasured" };

type Check = { target: string; value: Row[keyof Row]; isMet: boolean; beside?: Row };

const MOST_DRAIN = 1.05;
const LEAST_SHARE_USED = 0.95;
const MOST_DELIVERIES = 1.1;
const MOST_RECOVERY_SECONDS = 120;
/** A minute, and a run with its way through QStash. */
const MOST_FRESH_SECONDS = 65;
/** Two rows of the same are so far apart by chance: a tenth, and one more second. */
const AS_FRESH = { times: 1.1, andSeconds: 1 };
/** What this service must not be behind in, where both have the figure. */
const COMPARED = {
  callsOverNeeded: "calls / needed",
  provider429: "429s",
  differingKeys: "keys that differ",
} as const;
const WITHOUT_429 = ["a", "b", "c", "c0", "f", "g", "h"];

/** What this service must reach, row by row, and beside every other contestant in the same scenario. */
export function targetsOf(rows: readonly Row[], own: string): Target[] {
  return rows
    .filter(({ contestant }) => contestant === own)
    .flatMap((row) => {
      const others = rows.filter(({ scenario, contestant }) => scenario === row.scenario && contestant !== own);
      const alone = rows.find(({ scenario, contestant }) => scenario === `${row.scenario}0` && contestant === own);
      const checks = [
        ...ownChecks(row),
        ...(alone === undefined ? [] : freshChecks(row, alone)),
        ...aheadChecks(row, others),
      ];
      return checks.map(
        ({ target, value, isMet, beside }) =>
          ({
            scenario: row.scenario,
            target,
            value: String(value ?? "n/a"),
            verdict: row.valid && beside?.valid !== false ? (isMet ? "met" : "missed") : "unmeasured",
          }) satisfies Target,
      );
    });
}

function ownChecks(row: Row): Check[] {
  const { scenario } = row;
  const checks: Check[] = [
    { target: "every event answered 200 at last", value: row.non200, isMet: row.non200 === 0 },
    { target: "0 lost updates", value: row.lostUpdates ?? row.differingKeys, isMet: row.differingKeys === 0 },
    { target: "0 wasted runs", value: row.wastedRuns, isMet: row.wastedRuns === 0 },
    { target: "0 s slept in functions", value: row.sleptSeconds, isMet: row.sleptSeconds === 0 },
  ];
  if (row.drained !== null) checks.push({ target: "drained", value: String(row.drained), isMet: row.drained });
  if (WITHOUT_429.includes(scenario))
    checks.push({ target: "0 x 429", value: row.provider429, isMet: row.provider429 === 0 });
  else checks.push({ target: "0 x 429 but the excused", value: row.unexcused429, isMet: row.unexcused429 === 0 });
  if (row.user429 !== null) checks.push({ target: "0 x 429 for users", value: row.user429, isMet: row.user429 === 0 });
  if (row.shareUsed !== null) {
    const target = `${LEAST_SHARE_USED} of the share used`;
    checks.push({ target, value: row.shareUsed, isMet: row.shareUsed >= LEAST_SHARE_USED });
  }
  if (row.drainSeconds !== null) {
    const target = `drain at most ${MOST_DRAIN} of the bound`;
    const value = row.drainSeconds === "never" ? "never" : row.drainOverBound;
    checks.push({ target, value, isMet: atMost(value, MOST_DRAIN) });
  }
  if (["a", "b"].includes(scenario)) {
    const target = `at most ${MOST_DELIVERIES} deliveries a job`;
    checks.push({ target, value: row.deliveriesPerJob, isMet: atMost(row.deliveriesPerJob, MOST_DELIVERIES) });
  }
  if (scenario === "b") {
    const target = `events stored within ${MOST_FRESH_SECONDS} s`;
    checks.push({ target, value: row.freshMostSeconds, isMet: atMost(row.freshMostSeconds, MOST_FRESH_SECONDS) });
  }
  if (row.recoverySeconds !== null) {
    const target = `recovered within ${MOST_RECOVERY_SECONDS} s`;
    checks.push({ target, value: row.recoverySeconds, isMet: atMost(row.recoverySeconds, MOST_RECOVERY_SECONDS) });
  }
  return checks;
}

function freshChecks(row: Row, alone: Row): Check[] {
  return (["freshP50Seconds", "freshP99Seconds"] as const).map((figure) => {
    const most = Number(alone[figure]) * AS_FRESH.times + AS_FRESH.andSeconds;
    const target = `${figure === "freshP50Seconds" ? "p50" : "p99"} as fresh as alone (${alone[figure]} s)`;
    return { target, value: row[figure], isMet: atMost(row[figure], most), beside: alone };
  });
}

function aheadChecks(row: Row, others: readonly Row[]): Check[] {
  return others.flatMap((other) => {
    const figures = (["callsOverNeeded", "provider429", "differingKeys"] satisfies (keyof typeof COMPARED)[]).filter(
      (figure) => row[figure] !== null && other[figure] !== null,
    );
    const behind = figures.filter((figure) => Number(row[figure]) > Number(other[figure]));
    const target = `not behind ${other.contestant} in ${figures.map((figure) => COMPARED[figure]).join(", ")}`;
    return {
      target,
      value: behind.length === 0 ? "level or ahead" : behind.join(", "),
      isMet: behind.length === 0,
      beside: other,
    };
  });
}

function atMost(value: number | "never" | null, most: number): boolean {
  return typeof value === "number" && value <= most;
}

export function targetsTable(targets: readonly Target[]): string {
  return table(
    ["", "target", "measured", ""],
    targets.map(({ scenario, target, value, verdict }) => [scenario, target, value, verdict]),
  );
}
