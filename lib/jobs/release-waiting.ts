import { publishWithSlots } from "@/lib/jobs/publish-jobs";
import type { Service } from "@/lib/service";
import { EVENT_EFFECTS } from "@/lib/webhook/event-effects";

/**
 * Accepts events that waited for their account (of one user, or whoever's) as if they came now, oldest first, and
 * publishes their jobs. Answers how many no longer wait.
 */
export async function releaseWaiting(service: Service, request: { userId?: string; limit: number }): Promise<number> {
  const { released, publish } = await service.store.releaseWaiting({
    ...request,
    spacingMs: service.env.limits.minRunSpacingMs,
    effects: EVENT_EFFECTS,
  });
  await service.reach("reconcile:waiting-released");
  await publishWithSlots(service, publish);
  return released;
}
