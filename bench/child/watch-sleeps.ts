import { syncBuiltinESMExports } from "node:module";
import promises from "node:timers/promises";

/** Its timers, and those of Node's own copy, are a clock and the ends of idle connections; nobody waits for them. */
const HTTP_CLIENT = /[\\/]undici[\\/]/;

/**
 * Tells of each wait inside a function: a timer that is set and fires while one is under way. The time limit of a call is
 * cleared by its answer and tells nothing. To be called before the contestant's code is loaded.
 */
export function watchSleeps(onSlept: (ms: number) => void): <T>(work: () => Promise<T>) => Promise<T> {
  let underWay = 0;
  const { setTimeout: later } = globalThis;
  const { setTimeout: sleep } = promises;

  const told = (ms: number | undefined, wasUnderWay: boolean) => {
    if (wasUnderWay && underWay > 0 && ms !== undefined && ms > 0) onSlept(ms);
  };
  globalThis.setTimeout = new Proxy(later, {
    apply(_target, self, [work, ms, ...given]: [(...given: unknown[]) => void, number | undefined, ...unknown[]]) {
      const wasUnderWay = underWay > 0 && !HTTP_CLIENT.test(new Error().stack ?? "");
      const fire = () => {
        told(ms, wasUnderWay);
        work(...given);
      };
      return Reflect.apply(later, self, [fire, ms]);
    },
  });
  promises.setTimeout = async (ms, ...given) => {
    const wasUnderWay = underWay > 0;
    const value = await sleep(ms, ...given);
    told(ms, wasUnderWay);
    return value;
  };
  syncBuiltinESMExports();

  return async (work) => {
    underWay += 1;
    try {
      return await work();
    } finally {
      underWay -= 1;
    }
  };
}
