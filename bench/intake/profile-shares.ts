import { readFile } from "node:fs/promises";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";
import type { Profiled } from "@/bench/intake/profile";

type CallFrame = { functionName: string; url: string; lineNumber: number; columnNumber: number };
/** What `--cpu-prof` writes (Chrome DevTools protocol, Profiler.Profile). Times are microseconds. */
export type CpuProfile = {
  nodes: { id: number; callFrame: CallFrame }[];
  startTime: number;
  samples: number[];
  timeDeltas: number[];
};
export type Share = { name: string; msAnEvent: number };

/** Time in each package or function itself, without what it calls, between two moments. Idle time is left out. */
export async function sharesOf(profiled: Profiled, events: number, by: "package" | "function"): Promise<Share[]> {
  const { profile, fromUs, toUs } = profiled;
  const spent = new Map<number, number>();
  let at = profile.startTime;
  profile.samples.forEach((node, i) => {
    const delta = profile.timeDeltas[i] ?? 0;
    at += delta;
    if (at >= fromUs && at <= toUs) spent.set(node, (spent.get(node) ?? 0) + delta);
  });
  const maps = new Map<string, SourceMap | null>();
  const shares = new Map<string, number>();
  for (const { id, callFrame } of profile.nodes) {
    const us = spent.get(id);
    if (us === undefined || callFrame.functionName === "(idle)") continue;
    const { file, name } = await whereIs(callFrame, maps);
    const key = by === "package" ? packageOf(file) : `${name || "(anonymous)"} ${shortened(file)}`;
    shares.set(key, (shares.get(key) ?? 0) + us);
  }
  return [...shares].map(([name, us]) => ({ name, msAnEvent: us / 1000 / events }));
}

/** Where a function stands in the sources: the build keeps maps beside what it bundled. */
async function whereIs(
  { url, functionName, lineNumber, columnNumber }: CallFrame,
  maps: Map<string, SourceMap | null>,
): Promise<{ file: string; name: string }> {
  if (url === "") return { file: functionName, name: functionName };
  if (!url.includes("/.next/server/")) return { file: url, name: functionName };
  let map = maps.get(url);
  if (map === undefined) {
    map = await readMap(fileURLToPath(url.startsWith("file:") ? url : `file://${url}`));
    maps.set(url, map);
  }
  const entry = map?.findEntry(lineNumber, columnNumber);
  if (entry === undefined || !("originalSource" in entry)) return { file: url, name: functionName };
  // The build shortens names: the line tells more.
  return { file: entry.originalSource, name: `line ${entry.originalLine + 1}` };
}

async function readMap(file: string): Promise<SourceMap | null> {
  try {
    return new SourceMap(JSON.parse(await readFile(`${file}.map`, "utf8")));
  } catch {
    return null;
  }
}

function packageOf(file: string): string {
  const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file) ?? [];
  if (name !== undefined) return name;
  if (file.startsWith("(")) return file;
  if (file.startsWith("node:")) return "node";
  if (file === "" || !file.includes("/")) return "native";
  const [, own] = /\/((?:lib|app)\/(?:[^/]+\/)?)[^/]*$/.exec(file) ?? [];
  return own ?? "next (bundled)";
}

function shortened(file: string): string {
  return file.split("/").slice(-3).join("/");
}
