import type { Report, Tools } from "@/lib/cli/report";
import { colors, cut, fromNow, plain, table } from "@/lib/cli/text";
import type { JobStatus } from "@/lib/domain";
import type { ListedJob } from "@/lib/store/answers";

export type JobFilter = { status?: JobStatus; accountId?: string; limit: number };

const HEAD = ["JOB", "WORK", "ACCOUNT", "STATUS", "REASON", "ATTEMPTS", "CREATED", "TIME", "ERROR"];
const ERROR_CHARACTERS = 80;

/** The newest jobs that fit the filter. */
export async function listJobs({ service }: Tools, filter: JobFilter): Promise<Report> {
  const { jobs } = await service.store.listJobs(filter);
  const text = jobs.length === 0 ? "No jobs." : jobsTable(jobs, service.clock());
  return { exit: 0, document: { jobs }, text };
}

/** Jobs that have used their attempts or cannot succeed: nobody tries them again unless they are replayed. */
export async function listDeadJobs(tools: Tools, filter: Omit<JobFilter, "status">): Promise<Report> {
  const report = await listJobs(tools, { ...filter, status: "dead" });
  const hint = "Once the reason is mended: npm run ops -- replay JOB, or replay --all.";
  return { ...report, text: report.text === "No jobs." ? "No dead jobs." : `${report.text}\n\n${hint}` };
}

function jobsTable(jobs: ListedJob[], now: number): string {
  return table(
    HEAD,
    jobs.map((job) => [
      job.jobId,
      job.workType,
      job.accountId,
      COLOURS[job.status](job.status),
      job.reason,
      String(job.attempts),
      fromNow(job.createdAt, now),
      timeOf(job, now),
      cut(plain(job.lastError ?? ""), ERROR_CHARACTERS),
    ]),
  );
}

const COLOURS: Record<JobStatus, (text: string) => string> = {
  queued: colors.cyan,
  running: colors.blue,
  done: colors.green,
  superseded: colors.dim,
  dead: colors.red,
  gone: colors.yellow,
};

/** The time that matters for its status. */
function timeOf(job: ListedJob, now: number): string {
  if (job.status === "queued") return `due ${fromNow(job.dueAt, now)}`;
  if (job.status === "running") return `began ${fromNow(job.startedAt, now)}`;
  return `ended ${fromNow(job.finishedAt, now)}`;
}
