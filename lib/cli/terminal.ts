import cliProgress from "cli-progress";

export type Progress = { advance(by: number): void; stop(): void };

/** The operator's side of a command while it works. Everything goes to standard error. */
export interface Terminal {
  note(line: string): void;
  /** A bar on a terminal; elsewhere a line at each tenth. Stop it before the command answers. */
  progress(total: number, what: string): Progress;
  /** A command is no function: it may wait, where a worker must never sleep. */
  wait(ms: number): Promise<void>;
}

export function createTerminal(stream: NodeJS.WriteStream): Terminal {
  let above: ((line: string) => void) | undefined;
  const note = (line: string) => {
    if (above === undefined) stream.write(`${line}\n`);
    else above(`${line}\n`);
  };
  return {
    note,
    progress(total, what) {
      if (!stream.isTTY) return progressLines(total, what, note);
      const format = `${what} [{bar}] {value}/{total} {duration_formatted}`;
      // The terminal's own settings stay as they are: Ctrl-C ends a command at once and restores nothing.
      const bars = new cliProgress.MultiBar({ stream, format, linewrap: true, hideCursor: false });
      const bar = bars.create(total, 0);
      above = (line) => bars.log(line);
      return {
        advance: (by) => bar.increment(by),
        stop() {
          bars.stop();
          above = undefined;
        },
      };
    },
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  };
}

function progressLines(total: number, what: string, note: (line: string) => void): Progress {
  let done = 0;
  return {
    advance(by) {
      const before = Math.floor((done * 10) / total);
      done += by;
      if (Math.floor((done * 10) / total) > before) note(`${what}: ${done} of ${total}`);
    },
    stop() {},
  };
}
