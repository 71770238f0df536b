import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "../..");
const WAITS = /\bset(?:Timeout|Interval|Immediate)\b|timers\/promises|\bAtomics\.wait|\bpg_sleep\b/;

/** Each ends a call that takes too long, and nothing waits for it; the CLI's is a pause between two looks. */
const TIMERS = [
  "lib/cli/terminal.ts",
  "lib/http/post-json.ts",
  "lib/jobs/publisher.ts",
  "lib/provider/send-request.ts",
];

it("no function sleeps: the only timers of the service are the time limits of single calls", () => {
  const files = ["app", "lib", "supabase/migrations"].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(ts|tsx|sql)$/.test(file))
      .map((file) => path.join(folder, file)),
  );
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => WAITS.test(readFileSync(path.join(ROOT, file), "utf8"))).sort()).toEqual(TIMERS);
});
