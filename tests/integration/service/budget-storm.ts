import type { Publishable } from "@/lib/domain";
import { type BudgetDriver, positive } from "@/tests/integration/service/drive-budget";

type Given = { left: number; dueInMs?: number };

/** A little after the whole second that QStash counts in. */
const asQStash = (delivery: number, wait: number) => Math.ceil(wait / 1000) * 1000 - wait + ((delivery * 37) % 400);

/** A job each `everyMs`, delivered so long after its slot; its run ends after `runMs`, with calls left. */
export async function storm(
  budget: BudgetDriver,
  jobs: Given[],
  everyMs: number,
  runMs: number,
  lateOf: (delivery: number, wait: number) => number = asQStash,
): Promise<{ calls: number[]; done: number }> {
  const start = budget.now;
  const calls: number[] = [];
  let [sent, done] = [0, 0];
  const later = createTurns();

  async function come(left: number, dueInMs: number): Promise<void> {
    const job = budget.job(3, dueInMs);
    const [wait = 0] = await budget.reserve([job]);
    send(job, left, wait);
  }
  function send(job: Publishable, left: number, wait: number): void {
    later.add(budget.now + wait + lateOf(sent, wait), () => deliver(job, left));
    sent += 1;
  }
  async function deliver(job: Publishable, left: number): Promise<void> {
    const admitted = await budget.admit(job);
    if (admitted.kind === "held") throw new Error("Two runs of one account");
    if (admitted.kind !== "go") return send({ ...job, delivery: job.delivery + 1 }, left, positive(admitted).waitMs);
    for (let made = left; made < 3; made += 1) calls.push(budget.now);
    later.add(budget.now + runMs, async () => {
      done += 1;
      await budget.release(job, left, admitted.slotAt);
    });
  }
  jobs.forEach(({ left, dueInMs = 0 }, i) => {
    later.add(start + i * everyMs, () => come(left, dueInMs));
  });
  await later.play((at) => {
    budget.now = Math.max(budget.now, at);
  });
  return { calls, done };
}

/** What is to be done when, in the order of time. */
function createTurns() {
  const turns: { at: number; run: () => Promise<void> }[] = [];
  return {
    add(at: number, run: () => Promise<void>): void {
      const i = turns.findLastIndex((turn) => turn.at <= at);
      turns.splice(i + 1, 0, { at, run });
    },
    async play(moveTo: (at: number) => void): Promise<void> {
      for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
        moveTo(turn.at);
        await turn.run();
      }
    },
  };
}
