import { KINDS, type Kind } from "@/bench/intake/kinds";
import { type Latency, PER_SECOND } from "@/bench/intake/measure-latency";
import type { Memory } from "@/bench/intake/measure-memory";
import type { Throughput } from "@/bench/intake/measure-throughput";
import { percentile } from "@/bench/report/analyse-runs";
import { colors, table } from "@/lib/cli/text";

export type Figures = { throughput?: Throughput; latency?: Latency; memory?: Memory };
/** `atLeast` or `atMost` is what is wanted. */
export type Target = { name: string; measured: number; atLeast?: number; atMost?: number; met: boolean };

type Ratio = { kind: Kind; of: Kind; atLeast: number };
const RATIOS: readonly Ratio[] = [
  { kind: "duplicate", of: "bare+1", atLeast: 0.8 },
  { kind: "coalesced", of: "bare+1", atLeast: 0.7 },
  { kind: "accepted", of: "bare", atLeast: 0.15 },
];
const P99_AT_MOST = 3;
const MEMORY_AT_MOST = 1.1;

const median = (values: readonly number[]) => percentile(values, 0.5) ?? Number.NaN;

export function targetsOf({ throughput, latency, memory }: Figures): Target[] {
  const targets: Target[] = [];
  for (const { kind, of, atLeast } of throughput === undefined ? [] : RATIOS) {
    const rate = (k: Kind) => median(throughput?.[k].map(({ perSecond }) => perSecond) ?? []);
    const cpu = (k: Kind) => median(throughput?.[k].map(({ cpuMs }) => cpuMs) ?? []);
    targets.push(target(`${kind} / ${of}, events a second`, rate(kind) / rate(of), { atLeast }));
    targets.push(target(`${of} / ${kind}, processor time an event`, cpu(of) / cpu(kind), { atLeast }));
  }
  if (latency !== undefined) {
    const p99 = (kind: keyof Latency) => median(latency[kind].map(({ p99Ms }) => p99Ms));
    for (const kind of ["duplicate", "coalesced", "accepted"] as const) {
      const measured = p99(kind) / p99("bare+1");
      targets.push(target(`${kind} / bare+1, p99 at ${PER_SECOND} a second`, measured, { atMost: P99_AT_MOST }));
    }
  }
  const [early, late] = memory ?? [];
  if (early !== undefined && late !== undefined) {
    const name = `memory held after ${late.events} events / after ${early.events}`;
    targets.push(target(name, late.heldMb / early.heldMb, { atMost: MEMORY_AT_MOST }));
  }
  return targets;
}

/** The medians of the rounds, then the memory. */
export function figuresTable({ throughput, latency, memory }: Figures): string {
  const lines = KINDS.map((kind) => {
    const rounds = throughput?.[kind] ?? [];
    const waits = kind === "bare" ? [] : (latency?.[kind] ?? []);
    return [
      kind,
      told(median(rounds.map(({ perSecond }) => perSecond)), 0),
      told(median(rounds.map(({ cpuMs }) => cpuMs)), 2),
      told(median(rounds.map(({ machineBusy }) => machineBusy)) * 100, 0),
      told(median(waits.map(({ p50Ms }) => p50Ms)), 1),
      told(median(waits.map(({ p99Ms }) => p99Ms)), 1),
    ];
  });
  const head = [
    "",
    "events/s",
    "processor ms an event",
    "machine busy %",
    `p50 ms at ${PER_SECOND}/s`,
    `p99 ms at ${PER_SECOND}/s`,
  ];
  const held = (memory ?? []).map(
    ({ events, heldMb, leftMb }) =>
      `after ${events} events: ${heldMb.toFixed(0)} MB held, ${leftMb.toFixed(0)} MB with the garbage not yet collected`,
  );
  return [table(head, lines), ...held].join("\n");
}

export function targetsTable(targets: readonly Target[]): string {
  const lines = targets.map(({ name, measured, atLeast, atMost, met }) => [
    name,
    told(measured, 2),
    atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`,
    met ? colors.green("met") : colors.red("not met"),
  ]);
  return table(["target", "measured", "wanted", ""], lines);
}

function target(name: string, measured: number, wanted: { atLeast?: number; atMost?: number }): Target {
  const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = wanted;
  return { name, measured, ...wanted, met: measured >= atLeast && measured <= atMost };
}

function told(value: number, digits: number): string {
  return Number.isNaN(value) ? "n/a" : value.toFixed(digits);
}
