import { setTimeout as sleep } from "node:timers/promises";
import type { WorkType } from "@/lib/domain";
import type { PostAnswer } from "@/sandbox/demo/post-webhook";
import type { StormPost } from "@/sandbox/demo/storm";

/** Answers of the storm so far; `sent` of them are the sum of the others. */
export type Tally = {
  sent: number;
  accepted: number;
  duplicate: number;
  coalesced: number;
  other: number;
  non200: number;
  lastAnswerAt: Date;
};

export type Replay = {
  /** 2: twice as fast. */
  speed: number;
  post(body: string, signature: string): Promise<PostAnswer>;
  /** A new upstream version of the account. */
  change(accountId: string, workType: WorkType): void;
  /** A refused post is sent again until it is answered, as SnapTrade does; otherwise it counts as `non200`. */
  sendAgain: boolean;
  stopped(): boolean;
};

export const CONNECTIONS = 8;
const PAUSE_BEFORE_AGAIN_MS = 200;

export function emptyTally(): Tally {
  return { sent: 0, accepted: 0, duplicate: 0, coalesced: 0, other: 0, non200: 0, lastAnswerAt: new Date() };
}

/**
 * Posts the storm at its own pace and notes every answer in `tally`. At most 8 posts are under way: what comes later
 * then waits its turn. The account of an event changes upstream before the first copy is posted, so an event whose run
 * read too early leaves a difference behind.
 */
export async function replayStorm(storm: readonly StormPost[], replay: Replay, tally: Tally): Promise<void> {
  const startedAt = Date.now();
  const queue = storm.values();

  async function send({ body, signature }: StormPost): Promise<PostAnswer> {
    for (;;) {
      const answer = await replay.post(body, signature);
      const refused = answer.status === 0 || answer.status >= 500;
      if (!refused || !replay.sendAgain || replay.stopped()) return answer;
      await sleep(PAUSE_BEFORE_AGAIN_MS);
    }
  }

  // Posts are taken in order: each sender waits until the next one is due, posts it, and takes another.
  async function sender(): Promise<void> {
    for (const post of queue) {
      const wait = startedAt + post.atMs / replay.speed - Date.now();
      if (wait > 0) await sleep(wait);
      if (replay.stopped()) return;
      for (const workType of post.change?.workTypes ?? []) replay.change(post.change?.accountId ?? "", workType);
      count(tally, await send(post));
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, sender));
}

function count(tally: Tally, { status, outcome }: PostAnswer): void {
  tally.sent += 1;
  tally.lastAnswerAt = new Date();
  if (status !== 200) tally.non200 += 1;
  else if (outcome === "accepted" || outcome === "duplicate" || outcome === "coalesced") tally[outcome] += 1;
  else tally.other += 1;
}
