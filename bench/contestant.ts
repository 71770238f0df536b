import type { Told } from "@/bench/child/protocol";
import type { WorldClock } from "@/bench/world/clock";
import type { PostAnswer } from "@/sandbox/demo/post-webhook";
import type { RunningQStash } from "@/sandbox/qstash/start-qstash";

/** Everything around a contestant, the same for all of them. */
export type Parts = {
  clock: WorldClock;
  /** Where the contestant listens; QStash delivers there. */
  port: number;
  /** The service's environment: where everything is, with which keys. */
  env: Record<string, string>;
  /** Straight to the servers, for queues that do not go over HTTP. */
  databaseUrl: string;
  redisUrl: string;
  qstash: RunningQStash;
  /** It will be killed, and another process takes over. */
  kills?: true;
  /** Gets what the contestant's process tells. */
  hear(told: Told): void;
};

/** What a contestant's process serves, inside that process. */
export type Served = {
  answer(request: Request): Promise<Response>;
  /** Called each minute of the row's time, as a cron; absent: the contestant has none. */
  tick?(): Promise<void>;
  /** Makes jobs for these accounts' stale holdings, less urgent than events where it can tell them apart. */
  sweep(accountIds: readonly string[]): Promise<void>;
  /** Jobs made so far, and how many of them will be run though QStash may know nothing of them. */
  jobs(): Promise<{ all: number; open: number }>;
};

/** What the contestant's code gets inside its process. */
export type Inside = Pick<Parts, "clock" | "env" | "databaseUrl" | "redisUrl"> & {
  tell(told: Told): void;
};

export type Usage = { cpuSeconds: number; peakMemoryMb: number };

export type Running = {
  post(body: string, signature: string): Promise<PostAnswer>;
  /** A sweep of these stale accounts begins. */
  sweep(accountIds: readonly string[]): void;
  /** SIGKILL, as a crash. */
  kill(): void;
  restart(): Promise<void>;
  close(): Promise<void>;
  /** Null where this machine has no /proc. */
  figures(): Promise<Figures>;
};

export type Figures = { jobs: number; open: number; usage: Usage | null };

export type Contestant = {
  name: string;
  /** Its best honest configuration, and why that one. */
  reason: string;
  /** The part of the limit that it may use. */
  share: number;
  /** How much later than its key's last run an event's run may begin; others begin at once. */
  spacingMs: number;
  /** It talks to Redis or Postgres itself: the fronts do not see all of its round trips. */
  direct?: true;
  /** Inside its own process. */
  serveInside(inside: Inside): Promise<Served>;
  start(parts: Parts): Promise<Running>;
};
