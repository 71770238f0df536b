import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { assertOutcomes, countStored, type Kind, PATHS, prepare } from "@/bench/intake/kinds";
import { connect, postAll } from "@/bench/intake/load";
import { type CpuProfile, type Share, sharesOf } from "@/bench/intake/profile-shares";
import type { App } from "@/bench/intake/start-app";
import type { IntakeStack } from "@/bench/intake/start-stack";
import { say } from "@/bench/run-row";
import { table } from "@/lib/cli/text";

const PROFILED: readonly Kind[] = ["bare", "bare+1", "duplicate", "coalesced", "accepted"];
const MOST_ROWS = 25;

/**
 * Where the processor time of an event goes: each kind on a process of its own under V8's sampling profiler, which itself
 * costs a little. The profiles are kept in `folder`, for Chrome DevTools. Answers tables of milliseconds an event, by package
 * and by function.
 */
export async function profileKinds(
  folder: string,
  stack: IntakeStack,
  start: (nodeOptions: string[]) => Promise<App>,
  count: number,
  inFlight: number,
): Promise<string> {
  await mkdir(folder, { recursive: true });
  const byPackage = new Map<Kind, Share[]>();
  const byFunction = new Map<Kind, Share[]>();
  for (const kind of PROFILED) {
    say(`profile: ${kind}`);
    const profiled = await profileOf(path.join(folder, `${kind}.cpuprofile`), stack, start, kind, count, inFlight);
    byPackage.set(kind, await sharesOf(profiled, count, "package"));
    byFunction.set(kind, await sharesOf(profiled, count, "function"));
  }
  return `${sharesTable(byPackage)}\n\n${sharesTable(byFunction)}`;
}

export type Profiled = { profile: CpuProfile; fromUs: number; toUs: number };

async function profileOf(
  file: string,
  stack: IntakeStack,
  start: (nodeOptions: string[]) => Promise<App>,
  kind: Kind,
  count: number,
  inFlight: number,
): Promise<Profiled> {
  const folder = await mkdtemp(path.join(tmpdir(), "snaptrade-intake-profile-"));
  try {
    const app = await start(["--cpu-prof", `--cpu-prof-dir=${folder}`]);
    const pool = connect(app.url, inFlight);
    const play = async () => {
      const signed = await prepare(kind, count, stack, pool);
      const storedBefore = await stack.storedEvents();
      const fromUs = nowUs();
      const outcomes = await postAll(pool, signed, PATHS[kind], inFlight);
      await stack.untilStored(storedBefore + countStored(outcomes));
      return { outcomes, fromUs, toUs: nowUs() };
    };
    await play(); // compiled and optimized by then
    const { outcomes, fromUs, toUs } = await play();
    assertOutcomes(outcomes, [kind]);
    await pool.destroy();
    await app.close(); // on its end it writes the profile
    const [written] = await readdir(folder);
    if (written === undefined) throw new Error("Node wrote no profile.");
    await copyFile(path.join(folder, written), file);
    const profile: CpuProfile = JSON.parse(await readFile(file, "utf8"));
    return { profile, fromUs, toUs };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** V8 counts by the monotonic clock too, which all processes share. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

function sharesTable(shares: ReadonlyMap<Kind, Share[]>): string {
  const kinds = [...shares.keys()];
  const ofName = (kind: Kind, name: string) => shares.get(kind)?.find((share) => share.name === name)?.msAnEvent ?? 0;
  const names = [...new Set([...shares.values()].flat().map(({ name }) => name))];
  const rows = names
    .map((name) => ({ name, ms: kinds.map((kind) => ofName(kind, name)) }))
    .sort((a, b) => Math.max(...b.ms) - Math.max(...a.ms))
    .slice(0, MOST_ROWS);
  const sums = kinds.map((kind) => (shares.get(kind) ?? []).reduce((sum, { msAnEvent }) => sum + msAnEvent, 0));
  const told = (ms: number) => ms.toFixed(3);
  return table(
    ["ms an event", ...kinds],
    [...rows.map(({ name, ms }) => [name, ...ms.map(told)]), ["all", ...sums.map(told)]],
  );
}
