import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process as `/proc` of Linux shows it; ids come again, so the start time belongs to it. */
export type ProcessRef = { pid: number; parent: number; startTime: string; command: string };

/** The process and everything below it. */
export function processTree(root: number): ProcessRef[] {
  const all = pids().flatMap((pid) => statOf(pid) ?? []);
  const tree = all.filter(({ pid }) => pid === root);
  for (const member of tree) tree.push(...all.filter(({ parent }) => parent === member.pid));
  return tree;
}

/** Those that still run. One that ended and was not yet collected by its parent does not. */
export function stillRunning(processes: readonly ProcessRef[]): ProcessRef[] {
  return processes.filter(({ pid, startTime }) => {
    const now = statOf(pid);
    return now !== undefined && now.startTime === startTime && now.state !== "Z";
  });
}

/** TCP ports on which these processes listen, on any address. */
export function listeningPorts(processes: readonly ProcessRef[]): number[] {
  const sockets = new Set(processes.flatMap(({ pid }) => socketInodes(pid)));
  const lines = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => readText(file).split("\n").slice(1));
  const ports = lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    return state === LISTEN && sockets.has(inode) ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : [];
  });
  return [...new Set(ports)].sort((a, b) => a - b);
}

/** TCP_LISTEN of the kernel's include/net/tcp_states.h. */
const LISTEN = "0A";

function pids(): number[] {
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** proc(5), /proc/pid/stat: the command stands in parentheses and may hold anything. */
function statOf(pid: number): (ProcessRef & { state: string }) | undefined {
  const text = readText(`/proc/${pid}/stat`);
  const end = text.lastIndexOf(")");
  if (end === -1) return undefined;
  const fields = text.slice(end + 2).split(" ");
  const [state = "", parent = ""] = fields;
  return {
    pid,
    command: text.slice(text.indexOf("(") + 1, end),
    state,
    parent: Number(parent),
    startTime: fields[19] ?? "",
  };
}

function socketInodes(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return names(folder).flatMap((fd) => /^socket:\[(\d+)\]$/.exec(linkTarget(`${folder}/${fd}`))?.[1] ?? []);
}

/** A process may end while it is looked at: then there is nothing to see. */
function readText(file: string): string {
  return attempt(() => readFileSync(file, "utf8")) ?? "";
}
function names(folder: string): string[] {
  return attempt(() => readdirSync(folder)) ?? [];
}
function linkTarget(link: string): string {
  return attempt(() => readlinkSync(link)) ?? "";
}
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
