import { failure, type Report, type Tools } from "@/lib/cli/report";
import { counted } from "@/lib/cli/text";
import { isAway } from "@/lib/guards/redis-scripts";
import { type DeadJob, replayDead } from "@/lib/jobs/replay-dead";

/** Jobs in one SQL call: each takes its key's lock until the call ends. */
const PAGE = 200;
/** Between two looks for free slots: as much of the budget has become free meanwhile. */
const LOOK_MS = 10_000;

type Outcome = { queued: string[]; superseded: string[]; notDead: string[]; unknown: string[]; unpublished: number };

/** Replays the dead jobs of these ids. Ids that are no dead job are told, and the others are replayed. */
export async function replayJobs(tools: Tools, ids: string[]): Promise<Report> {
  const jobIds = [...new Set(ids)];
  const { jobs } = await tools.service.store.listJobs({ jobIds, limit: jobIds.length });
  const known = new Set(jobs.map(({ jobId }) => jobId));
  const outcome: Outcome = {
    queued: [],
    superseded: [],
    notDead: jobs.filter(({ status }) => status !== "dead").map(({ jobId }) => jobId),
    unknown: jobIds.filter((jobId) => !known.has(jobId)),
    unpublished: 0,
  };
  const dead = jobs.filter(({ status }) => status === "dead");
  const stopped = await replayPage(tools, dead, outcome, () => {});
  return report(outcome, stopped);
}

/**
 * Replays every dead job, newest first, page by page, and waits where the budget has no slot within a minute. By
 * creation time, which never changes: a job that dies again meanwhile is not replayed twice.
 */
export async function replayAll(tools: Tools): Promise<Report> {
  const { store } = tools.service;
  const { dead: total } = await store.readHealth();
  const outcome: Outcome = { queued: [], superseded: [], notDead: [], unknown: [], unpublished: 0 };
  const progress = tools.terminal.progress(Math.max(1, total), "dead jobs");
  try {
    let before: { createdAt: string; jobId: string } | undefined;
    for (;;) {
      const { jobs } = await store.listJobs({
        status: "dead",
        limit: PAGE,
        ...(before === undefined ? {} : { before }),
      });
      const last = jobs.at(-1);
      if (last === undefined) return report(outcome, null);
      const stopped = await replayPage(tools, jobs, outcome, progress.advance);
      if (stopped !== null) return report(outcome, stopped);
      before = { createdAt: last.createdAt, jobId: last.jobId };
    }
  } finally {
    progress.stop();
  }
}

/** All of these, as slots become free. Answers why it stopped before the end, or null. */
async function replayPage(
  { service, terminal }: Tools,
  jobs: DeadJob[],
  outcome: Outcome,
  advance: (by: number) => void,
): Promise<string | null> {
  for (let rest = jobs; rest.length > 0; ) {
    const page = await replayDead(service, rest.slice(0, PAGE));
    if (isAway(page)) return "Redis gave no answer, so no slots could be reserved: check it and repeat the command";
    outcome.queued.push(...page.queued);
    outcome.superseded.push(...page.superseded);
    outcome.notDead.push(...page.notDead);
    outcome.unpublished += page.unpublished;
    advance(page.taken);
    const all = page.taken === Math.min(rest.length, PAGE);
    rest = rest.slice(page.taken);
    if (!all) {
      terminal.note(`${counted(rest.length, "job")} to go; the next minute of the budget is taken, waiting`);
      await terminal.wait(LOOK_MS);
    }
  }
  return null;
}

function report(outcome: Outcome, stopped: string | null): Report {
  const { queued, superseded, notDead, unknown, unpublished } = outcome;
  const lines = [
    `${counted(queued.length, "job")} queued again.`,
    ...(superseded.length > 0 ? [`${superseded.length} superseded: a queued job of the key reads for them.`] : []),
    ...(unpublished > 0 ? [`${unpublished} of them QStash did not take: reconcile publishes them.`] : []),
    ...notDead.map((jobId) => `${jobId} is not dead: nothing was changed. See: npm run ops -- jobs`),
    ...unknown.map((jobId) => `${jobId} is no job that is stored: check the id with npm run ops -- dead`),
    ...(stopped === null ? [] : [stopped]),
  ];
  const text = lines.join("\n");
  if (stopped === null && notDead.length + unknown.length === 0) return { exit: 0, document: outcome, text };
  return { ...failure(text), document: { ...outcome, ...(stopped === null ? {} : { error: stopped }) } };
}
