import type { Running } from "@/bench/contestant";
import { accountEvent } from "@/bench/scenarios/storms";
import type { World } from "@/bench/world/start-world";

/** Every scenario has so many accounts. */
const ACCOUNTS = 20;

/**
 * A few events and their runs before the row begins: what a process does for the first time (loading, compiling, connecting)
 * takes a second, which a row at ten times its speed would count as ten. The same for all; nothing of it counts.
 */
export async function warmUp(world: World, running: Running, quiet: () => Promise<unknown>): Promise<void> {
  const startMs = world.now();
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const eventType = index % 4 === 0 ? "ACCOUNT_TRANSACTIONS_UPDATED" : "ACCOUNT_HOLDINGS_UPDATED";
    // Before its start, so that no event of the row has its id.
    const { body, signature } = accountEvent(eventType, index, -1_000 - index, startMs);
    await running.post(body, signature);
  }
  await quiet();
}
