import { Presets, SingleBar } from "cli-progress";

export type Progress = {
  sent: number;
  events: number;
  duplicate: number;
  coalesced: number;
  queued: number;
  running: number;
  done: number;
  callsLastMinute: number;
  limit: number;
  count429: number;
};

const LOOK_EVERY_MS = { terminal: 500, plain: 5_000 };

/**
 * Shows on stderr how the storm goes, until stopped: a bar that is drawn over on a terminal, a line every few seconds
 * elsewhere. stdout stays free for the result.
 */
export function showProgress(read: () => Promise<Progress>): { stop(): Promise<void> } {
  const terminal = process.stderr.isTTY === true;
  const bar = terminal
    ? new SingleBar(
        { format: "{bar} {value}/{total} events  {text}", stream: process.stderr, clearOnComplete: false },
        Presets.shades_classic,
      )
    : undefined;
  let shown = Promise.resolve();
  let started = false;

  async function show(): Promise<void> {
    const progress = await read();
    const text = describe(progress);
    if (bar === undefined) {
      process.stderr.write(`${progress.sent}/${progress.events} events  ${text}\n`);
      return;
    }
    if (!started) bar.start(progress.events, progress.sent, { text });
    started = true;
    bar.update(progress.sent, { text });
  }

  const timer = setInterval(
    () => {
      shown = shown.then(show).catch(() => undefined); // the figures of the end tell what is wrong
    },
    terminal ? LOOK_EVERY_MS.terminal : LOOK_EVERY_MS.plain,
  );
  return {
    async stop() {
      clearInterval(timer);
      await shown.then(show).catch(() => undefined);
      bar?.stop();
    },
  };
}

function describe(progress: Progress): string {
  const { duplicate, coalesced, queued, running, done, callsLastMinute, limit, count429 } = progress;
  return [
    `${duplicate} duplicate`,
    `${coalesced} coalesced`,
    `jobs ${queued} queued, ${running} running, ${done} done`,
    `SnapTrade ${callsLastMinute}/${limit} calls a minute`,
    `${count429} x 429`,
  ].join("  ");
}
