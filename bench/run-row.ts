import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { machineTime } from "@/bench/child/usage";
import type { Contestant, Figures, Running } from "@/bench/contestant";
import { countRoundTrips } from "@/bench/count-round-trips";
import { type Row, rowOf } from "@/bench/report/row";
import type { Scenario } from "@/bench/scenarios/scenario";
import { warmUp } from "@/bench/warm-up";
import { wallMs } from "@/bench/world/clock";
import { type Servers, startWorld, type World } from "@/bench/world/start-world";
import { emptyTally, replayStorm, type Tally } from "@/sandbox/demo/replay-storm";
import type { StormPost } from "@/sandbox/demo/storm";
import { createClosers } from "@/sandbox/stack/closers";

const LOOK_EVERY_MS = 250;
/** Nothing under way for so long of the row's time: it is over. */
const STILL_FOR_MS = 10_000;
const PROGRESS_EVERY_MS = 5_000;
const WARM_UP_MS = 120_000;
/** A contestant that refuses an event for so long after the last one is not asked again: the event counts as refused. */
const REFUSED_FOR_MS = 30 * 60_000;

/** One contestant in one scenario: start everything, play, wait until all is quiet, read the figures, close everything. */
export async function runRow(
  servers: Servers,
  scenario: Scenario,
  contestant: Contestant,
  scale: number,
  stopped: () => boolean,
): Promise<Row> {
  const closers = createClosers();
  try {
    const world = await startWorld(servers, { scale, ...scenario }, closers);
    const running = await contestant.start(world.parts);
    closers.add(contestant.name, running.close);
    await warmUp(world, running, () => quiet(world, running, WARM_UP_MS, stopped));
    await world.begin();
    const warm = await running.figures();
    const label = `${scenario.name} ${contestant.name}`;
    const tally = emptyTally();
    const progress = setInterval(() => say(`${label}: ${progressOf(world, tally)}`), PROGRESS_EVERY_MS);
    closers.add("progress", () => clearInterval(progress));

    const machineBefore = machineTime();
    const pauses = monitorEventLoopDelay({ resolution: 10 });
    pauses.enable();
    const startedMs = world.now();
    await scenario.play({
      world,
      running,
      wait: (worldMs) => sleep(wallMs(world.parts.clock, worldMs)),
      replay: (storm) => replay(world, running, storm, tally, stopped),
    });
    const drained = scenario.drains ? await quiet(world, running, scenario.patienceMs, stopped) : null;
    const machineAfter = machineTime();
    pauses.disable();
    if (stopped()) throw new Error("Stopped in the middle of a row.");
    const { jobs, usage } = since(warm, await running.figures());
    const busy = machineBefore !== null && machineAfter !== null ? busyShare(machineBefore, machineAfter) : null;
    const figures = await rowOf({
      world,
      scenario,
      contestant,
      tally,
      startedMs,
      drained,
      jobs,
      usage,
      busy,
      pauseMs: pauses.max / 1e6,
    });
    const canProbe = drained === true && !contestant.direct;
    const isQuiet = () => quiet(world, running, scenario.patienceMs, stopped);
    const row: Row = { ...figures, roundTrips: canProbe ? await countRoundTrips(world, running, isQuiet) : null };
    say(
      `${label}: ${drained === false ? "not drained" : "done"}, ${row.provider429} x 429, ${row.differingKeys} keys differ`,
    );
    return row;
  } finally {
    await closers.close();
  }
}

/** A change upstream, its event, its answer. */
async function replay(
  world: World,
  running: Running,
  storm: readonly StormPost[],
  tally: Tally,
  stopped: () => boolean,
): Promise<void> {
  const { recorder, snaptrade, now } = world;
  const until = now() + (storm.at(-1)?.atMs ?? 0) + REFUSED_FOR_MS;
  /** What is to be noted once the event is answered. */
  const unanswered = new Map<string, ((atMs: number) => void)[]>();
  const pending: ((atMs: number) => void)[] = [];
  await replayStorm(
    storm,
    {
      speed: world.parts.clock.scale,
      // Called right before the post of the event.
      change(accountId, workType) {
        if (snaptrade.account(accountId) === undefined) return;
        snaptrade.bumpAccount(accountId, workType);
        pending.push(recorder.changed({ accountId, workType }, now()));
      },
      async post(body, signature) {
        unanswered.set(body, [...(unanswered.get(body) ?? []), ...pending.splice(0)]);
        const answer = await running.post(body, signature);
        if (answer.status !== 200) return answer;
        for (const note of unanswered.get(body) ?? []) note(now());
        unanswered.delete(body);
        return answer;
      },
      sendAgain: true,
      stopped: () => stopped() || now() > until,
    },
    tally,
  );
}

async function quiet(world: World, running: Running, patienceMs: number, stopped: () => boolean): Promise<boolean> {
  const until = world.now() + patienceMs;
  let stillSince: number | null = null;
  while (world.now() < until && !stopped()) {
    const { pending, waiting, inFlight } = world.qstash.state();
    const isStill = pending + waiting + inFlight === 0 && (await running.figures()).open === 0;
    if (!isStill) stillSince = null;
    else stillSince ??= world.now();
    if (stillSince !== null && world.now() - stillSince >= STILL_FOR_MS) return true;
    await sleep(LOOK_EVERY_MS);
  }
  return false;
}

function since(warm: Figures, { jobs, usage }: Figures): Pick<Figures, "jobs" | "usage"> {
  const cpuSeconds = (usage?.cpuSeconds ?? 0) - (warm.usage?.cpuSeconds ?? 0);
  return { jobs: jobs - warm.jobs, usage: usage === null ? null : { ...usage, cpuSeconds } };
}

function progressOf(world: World, tally: { sent: number }): string {
  const stored = [...world.recorder.runs.values()].filter(({ storedMs }) => storedMs !== null).length;
  const { count429 } = world.snaptrade.state();
  const { pending, waiting, inFlight } = world.qstash.state();
  return `${tally.sent} posts, ${stored} runs stored, ${count429} x 429; QStash: ${pending} later, ${waiting} waiting, ${inFlight} under way`;
}

function busyShare(before: { busy: number; all: number }, after: { busy: number; all: number }): number {
  return (after.busy - before.busy) / Math.max(1, after.all - before.all);
}

/** On stderr: stdout is for the result. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
