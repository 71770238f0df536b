import type { Row } from "@/bench/report/row";

/** Held on any machine. */
const MOST_CALLS_OVER_NEEDED = 1.02;
/** Held where the machine has time to spare: where it has not, deliveries come late, and that is its own doing. */
const MOST_DELIVERIES_A_JOB = 1.1;
const LEAST_SHARE_USED = 0.9;
/** More than in the whole bench: a start and an end of a few seconds weigh more in a small storm. */
const MOST_DRAIN_OVER_BOUND = 1.3;

/** What the service missed in the small storm, alone and beside another contestant, in words; empty: nothing. */
export function smokeFaults(row: Row, other: Row): string[] {
  const { provider429, lostUpdates, wastedRuns, callsOverNeeded, drained, non200, valid } = row;
  const { deliveriesPerJob, shareUsed, drainOverBound } = row;
  const checks: [isGood: boolean, fault: string][] = [
    [drained === true, "not drained"],
    [non200 === 0, `${non200} events refused`],
    [provider429 === 0, `${provider429} x 429`],
    [lostUpdates === 0, `${lostUpdates} lost updates`],
    [wastedRuns === 0, `${wastedRuns} wasted runs`],
    [(callsOverNeeded ?? Infinity) <= MOST_CALLS_OVER_NEEDED, `${callsOverNeeded} times the calls needed`],
  ];
  for (const figure of ["provider429", "differingKeys", "callsOverNeeded"] as const) {
    const [own, its] = [row[figure] ?? Infinity, other[figure] ?? Infinity];
    checks.push([own <= its, `behind ${other.contestant} in ${figure} (${own}, ${its})`]);
  }
  if (valid) {
    checks.push(
      [(deliveriesPerJob ?? Infinity) <= MOST_DELIVERIES_A_JOB, `${deliveriesPerJob} deliveries a job`],
      [(shareUsed ?? 0) >= LEAST_SHARE_USED, `${shareUsed} of the share used`],
      [(drainOverBound ?? Infinity) <= MOST_DRAIN_OVER_BOUND, `drained in ${drainOverBound} times the bound`],
    );
  }
  return checks.flatMap(([isGood, fault]) => (isGood ? [] : [fault]));
}
