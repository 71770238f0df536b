import { MultiBar, Presets } from "cli-progress";

export type Progress = {
  sent: number;
  events: number;
  accepted: number;
  duplicate: number;
  coalesced: number;
  queued: number;
  running: number;
  done: number;
  callsLastMinute: number;
  limit: number;
  count429: number;
};

export type ShownProgress = {
  /** A line of its own, above the bar. */
  note(line: string): void;
  /** Shows the figures once more and leaves them. A second call draws nothing over what was printed since. */
  stop(): Promise<void>;
};

type Bar = ReturnType<MultiBar["create"]>;

const LOOK_EVERY_MS = { terminal: 500, plain: 5_000 };
const BAR = { format: "{bar} {value}/{total} {text}", barsize: 20, stream: process.stderr };

/**
 * Shows on stderr how the storm goes, until stopped: a bar and a line that are drawn over on a terminal, a line every few
 * seconds elsewhere. stdout stays free for the result.
 */
export function showProgress(read: () => Promise<Progress>): ShownProgress {
  const terminal = process.stderr.isTTY === true;
  const bars = terminal ? new MultiBar(BAR, Presets.shades_classic) : undefined;
  let drawn: { events: Bar; jobs: Bar } | undefined;
  let shown = Promise.resolve();
  let stopped: Promise<void> | undefined;

  async function show(): Promise<void> {
    const progress = await read();
    const { events, jobs } = describe(progress);
    if (bars === undefined) {
      process.stderr.write(`${progress.sent}/${progress.events} ${events} | ${jobs}\n`);
      return;
    }
    drawn ??= {
      events: bars.create(progress.events, progress.sent, { text: events }),
      jobs: bars.create(1, 0, { text: jobs }, { format: "{text}" }),
    };
    drawn.events.update(progress.sent, { text: events });
    drawn.jobs.update(0, { text: jobs });
  }

  async function end(): Promise<void> {
    clearInterval(timer);
    await shown.then(show).catch(() => undefined);
    bars?.stop();
  }

  const timer = setInterval(
    () => {
      shown = shown.then(show).catch(() => undefined); // the figures of the end tell what is wrong
    },
    terminal ? LOOK_EVERY_MS.terminal : LOOK_EVERY_MS.plain,
  );
  return {
    note(line) {
      if (bars === undefined || drawn === undefined) process.stderr.write(`${line}\n`);
      else bars.log(`${line}\n`);
    },
    stop() {
      stopped ??= end();
      return stopped;
    },
  };
}

function describe(progress: Progress): { events: string; jobs: string } {
  const { accepted, coalesced, duplicate, queued, running, done, callsLastMinute, limit, count429 } = progress;
  return {
    events: `events: ${accepted} accepted, ${coalesced} coalesced, ${duplicate} duplicate`,
    jobs: `jobs: ${queued} queued, ${running} running, ${done} done | ${callsLastMinute}/${limit} calls a minute, ${count429} x 429`,
  };
}
