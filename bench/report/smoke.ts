import type { Row } from "@/bench/report/row";

const MOST_CALLS_OVER_NEEDED = 1.02;
const MOST_DELIVERIES_A_JOB = 1.1;

/** What the service missed in the small storm, in words; empty: nothing. */
export function smokeFaults(row: Row): string[] {
  const { provider429, lostUpdates, wastedRuns, callsOverNeeded, deliveriesPerJob, drained, non200 } = row;
  const checks: [boolean, string][] = [
    [drained === true, "not drained"],
    [non200 === 0, `${non200} events refused`],
    [provider429 === 0, `${provider429} x 429`],
    [lostUpdates === 0, `${lostUpdates} lost updates`],
    [wastedRuns === 0, `${wastedRuns} wasted runs`],
    [(callsOverNeeded ?? Infinity) <= MOST_CALLS_OVER_NEEDED, `${callsOverNeeded} times the calls needed`],
    [(deliveriesPerJob ?? Infinity) <= MOST_DELIVERIES_A_JOB, `${deliveriesPerJob} deliveries a job`],
  ];
  return checks.flatMap(([isGood, words]) => (isGood ? [] : [words]));
}
