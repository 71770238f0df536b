import type { Scenario } from "@/bench/scenarios/scenario";
import { holdingsEvent, numberOf } from "@/bench/scenarios/storms";
import type { StormPost } from "@/sandbox/demo/storm";
import { withChanges } from "@/sandbox/demo/storm";
import { fourDigits } from "@/sandbox/snaptrade/world";

const MINUTE_MS = 60_000;
/** Each failing account has one event in this time, each healthy one an event a minute. */
const LENGTH_MS = { withFailing: 5 * MINUTE_MS, alone: 2 * MINUTE_MS };
/** What the last events may take. */
const AFTER_MS = MINUTE_MS / 2;
/** So many of the hundreds answer 500. */
const BROKEN_ONE_IN = 5;
/** The first numbers, hundreds of them, so that a path pattern names a hundred accounts. */
const FIRST_FAILING = 100;
const HUNDRED = 100;

/**
 * Accounts that fail for ever beside healthy ones: every fifth hundred answers 500 (a broken brokerage: three calls an
 * attempt, which are repeated), the others 403 (access was taken away: one call). With them and without them, so that the
 * healthy ones can be compared. The limit leaves room for both, retries after 1 and 3 minutes included (about 670 calls a
 * minute of the 1,125 that the share gives): what is measured is whether failures take more of it than they must.
 */
export function failingAccounts({ failing, healthy }: { failing: number; healthy: number }): Scenario[] {
  const shared = {
    ...{
      accounts: FIRST_FAILING + failing,
      limit: 1_500,
      patienceMs: 0,
      drains: false,
      isScarce: false,
      mostTimeScale: 5,
    },
    counted: (accountId: string) => numberOf(accountId) < FIRST_FAILING,
  };
  const play = (withFailing: boolean): Scenario["play"] =>
    async function play({ world, replay, wait }) {
      for (let from = 0; from < failing; from += HUNDRED) {
        const path = `/accounts/acct-${fourDigits(FIRST_FAILING + from).slice(0, 2)}*`;
        const status = (from / HUNDRED) % BROKEN_ONE_IN === 0 ? 500 : 403;
        await world.fault({ match: { path }, respond: { status, delayMs: world.latencyMs } });
      }
      await world.fault({ match: {}, respond: { delayMs: world.latencyMs } });
      const lengthMs = withFailing ? LENGTH_MS.withFailing : LENGTH_MS.alone;
      const startMs = world.now();
      const posts: Omit<StormPost, "change">[] = [];
      for (let i = 0; i < healthy; i += 1) {
        for (let atMs = (i / healthy) * MINUTE_MS; atMs < lengthMs; atMs += MINUTE_MS) {
          posts.push(holdingsEvent(i, atMs, startMs));
        }
      }
      const hundreds = failing / HUNDRED;
      for (let i = 0; withFailing && i < failing; i += 1) {
        // One of each hundred after another, so that no wave of one fault asks for more than the limit lets through.
        const index = FIRST_FAILING + (i % hundreds) * HUNDRED + Math.floor(i / hundreds);
        posts.push(holdingsEvent(index, (i / failing) * lengthMs, startMs));
      }
      await replay(withChanges(posts.sort((a, b) => a.atMs - b.atMs)));
      await wait(AFTER_MS);
    };
  return [
    { ...shared, name: "c", title: `${failing} failing accounts beside ${healthy} healthy ones`, play: play(true) },
    {
      ...shared,
      name: "c0",
      title: `the ${healthy} healthy accounts of c alone`,
      isOwnBaseline: true,
      play: play(false),
    },
  ];
}
