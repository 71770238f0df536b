import { setTimeout as sleep } from "node:timers/promises";
import type { Inside } from "@/bench/contestant";
import { wallMs } from "@/bench/world/clock";
import type { Provider } from "@/lib/provider/provider";

/** As the SnapTrade SDK does by itself on a 429 (its retry interceptor): three more tries, then the error. */
const SLEEPS_MS = [5_000, 10_000, 20_000];

/** Each call sleeps inside its function while the provider answers 429. */
export function sleepingProvider({ clock }: Pick<Inside, "clock">): (provider: Provider) => Provider {
  return (provider) => {
    const patient = async <T extends { kind: string }>(ask: () => Promise<T>): Promise<T> => {
      for (const ms of SLEEPS_MS) {
        const answer = await ask();
        if (answer.kind !== "throttled") return answer;
        await sleep(wallMs(clock, ms));
      }
      return ask();
    };
    return {
      listConnections: (...given) => patient(() => provider.listConnections(...given)),
      listAccounts: (...given) => patient(() => provider.listAccounts(...given)),
      readAccount: (...given) => patient(() => provider.readAccount(...given)),
      readBalances: (...given) => patient(() => provider.readBalances(...given)),
      readPositions: (...given) => patient(() => provider.readPositions(...given)),
      readOrders: (...given) => patient(() => provider.readOrders(...given)),
      readActivities: (...given) => patient(() => provider.readActivities(...given)),
    };
  };
}
