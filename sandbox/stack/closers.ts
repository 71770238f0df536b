export type Closer = () => void | Promise<void>;

export type Closers = {
  /** Runs when everything is closed, the latest first. Added too late, it runs at once. */
  add(name: string, closer: Closer): void;
  /** Whether closing has begun. */
  isClosing(): boolean;
  /** Idempotent: every call waits for the same end. Never throws: one part that fails does not keep the others open. */
  close(): Promise<void>;
};

/** No part may keep the others waiting for longer. */
const CLOSE_LIMIT_MS = 8_000;

/** What was started, so that it can be stopped in reverse order, from any moment of the start. */
export function createClosers(): Closers {
  const open: { name: string; closer: Closer }[] = [];
  let closing: Promise<void> | undefined;

  async function run({ name, closer }: { name: string; closer: Closer }): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not within ${CLOSE_LIMIT_MS / 1000} s`)), CLOSE_LIMIT_MS);
    });
    try {
      await Promise.race([closer(), late]);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      process.stderr.write(`${name} did not stop cleanly: ${reason}\n`);
    } finally {
      clearTimeout(timer);
    }
  }

  async function closeAll(): Promise<void> {
    for (let last = open.pop(); last !== undefined; last = open.pop()) await run(last);
  }

  return {
    add(name, closer) {
      open.push({ name, closer });
      if (closing !== undefined) closing = closing.then(closeAll);
    },
    isClosing: () => closing !== undefined,
    close() {
      closing ??= closeAll();
      return closing;
    },
  };
}
