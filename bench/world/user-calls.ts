import { type WorldClock, worldNow } from "@/bench/world/clock";
import { createProvider } from "@/lib/provider/create-provider";
import type { ProviderUser } from "@/lib/provider/provider";

const MINUTE_MS = 60_000;

/** Calls that the product makes for users who wait, beside the background: with the same client id, asking nobody. */
export function createUserCalls(clock: WorldClock, api: { clientId: string; consumerKey: string; baseUrl: string }) {
  const cooldown = { defaultMs: MINUTE_MS, maxMs: MINUTE_MS };
  const provider = createProvider({ ...api, clock: () => worldNow(clock), cooldown });
  let throttled = 0;
  return {
    throttled: () => throttled,
    async call(user: ProviderUser, accountId: string): Promise<void> {
      const { kind } = await provider.readBalances(user, accountId, new AbortController().signal);
      if (kind === "throttled") throttled += 1;
    },
  };
}
