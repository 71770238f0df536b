import { failure, type Report, type Tools } from "@/lib/cli/report";

/** Takes a user out: its secret is deleted at once, its jobs close as `gone` when they are delivered. */
export async function removeUser({ service }: Tools, userId: string): Promise<Report> {
  const { removed } = await service.store.removeUser({ userId });
  if (!removed) {
    return failure(`No user ${userId} is stored, or it was removed before. Nothing was changed; check the id.`);
  }
  return {
    exit: 0,
    document: { userId, removed },
    text:
      `${userId} is removed: its secret is deleted, its open jobs close as gone, its events are ignored. ` +
      "What was synced stays stored. At SnapTrade the user still exists: delete it there if it should be gone there too.",
  };
}
