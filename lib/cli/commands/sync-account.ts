import { failure, type Report, type Tools } from "@/lib/cli/report";
import { fromNow } from "@/lib/cli/text";
import { WORK_TYPES, type WorkType } from "@/lib/domain";
import { publishWithSlots } from "@/lib/jobs/publish-jobs";

/**
 * `accepted`: a new job. `already_queued`: one stood there and reads later than now, so it does what was asked; its id is
 * null if it began while we looked.
 */
type Synced = {
  workType: WorkType;
  jobId: string | null;
  outcome: "accepted" | "already_queued";
  dueAt: string | null;
};

/** Queues a run of each work type of one account, as if an event had come, through the budget. */
export async function syncAccount({ service }: Tools, accountId: string, workTypes: WorkType[]): Promise<Report> {
  const { store } = service;
  const { account } = await store.findAccount({ accountId });
  if (account === null) {
    return failure(`No account ${accountId} is stored. Check the id; "npm run users -- add" reads a user's accounts.`);
  }
  if (account.gone) {
    return failure(
      `Account ${accountId} is not synced: it was removed, its user ${account.userId} was removed, or its connection is ` +
        "disabled. A CONNECTION_FIXED or NEW_ACCOUNT_AVAILABLE event, or adding the user again, brings it back.",
    );
  }
  const asked = workTypes.map((workType) => ({ jobId: service.newId(), workType, accountId }));
  const { publish, failed } = await store.acceptJobs({
    reason: "manual",
    spacingMs: service.env.limits.minRunSpacingMs,
    items: asked,
  });
  const [fault] = failed;
  if (fault !== undefined) return failure(`Account ${accountId} could not be queued: ${fault.error}`);
  const unpublished = publish.length - (await publishWithSlots(service, publish));

  const { jobs: queued } = await store.listJobs({ accountId, status: "queued", limit: WORK_TYPES.length });
  const synced = asked.map(({ jobId, workType }): Synced => {
    const job = queued.find((other) => other.workType === workType);
    const dueAt = job?.dueAt ?? null;
    const isNew = job?.jobId === jobId || publish.some((other) => other.jobId === jobId);
    return isNew
      ? { workType, jobId, outcome: "accepted", dueAt }
      : { workType, jobId: job?.jobId ?? null, outcome: "already_queued", dueAt };
  });
  const now = service.clock();
  const lines = synced.map(({ workType, jobId, outcome, dueAt }) => {
    const due = dueAt === null || Date.parse(dueAt) <= now ? "" : `, due ${fromNow(dueAt, now)}`;
    return `${workType}: ${outcome === "accepted" ? "queued" : "was queued already"} as ${jobId ?? "a job that has begun"}${due}`;
  });
  const late =
    unpublished > 0 ? ["QStash did not take the message: reconcile publishes it within a minute or two."] : [];
  const follow = `To follow it: npm run ops -- jobs --account ${accountId}`;
  return { exit: 0, document: { accountId, jobs: synced, unpublished }, text: [...lines, ...late, follow].join("\n") };
}
