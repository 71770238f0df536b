import { afterEach, expect, it, vi } from "vitest";
import { showProgress } from "@/sandbox/demo/show-progress";

afterEach(() => vi.restoreAllMocks());

it("the demo's progress ends with the last figures, on stderr, and draws nothing over the result that follows", async () => {
  const lines: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  const stdout = vi.spyOn(process.stdout, "write");
  const figures = { sent: 9, events: 10, accepted: 4, duplicate: 3, coalesced: 2, queued: 1, running: 0, done: 5 };
  const progress = showProgress(async () => ({ ...figures, callsLastMinute: 15, limit: 250, count429: 0 }));
  progress.note("Waiting until all is quiet");
  await progress.stop();
  await progress.stop();
  expect(lines).toEqual([
    "Waiting until all is quiet\n",
    "9/10 events: 4 accepted, 2 coalesced, 3 duplicate | jobs: 1 queued, 0 running, 5 done | 15/250 calls a minute, 0 x 429\n",
  ]);
  expect(stdout).not.toHaveBeenCalled();
});
