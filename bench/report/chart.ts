import type { Row } from "@/bench/report/row";

type Panel = { title: string; value: (row: Row) => number | "never" | null };

const PANELS: readonly Panel[] = [
  { title: "provider calls", value: (row) => row.providerCalls },
  { title: "429s", value: (row) => row.provider429 },
  { title: "keys that differ at the end", value: (row) => row.differingKeys },
  { title: "wasted runs", value: (row) => row.wastedRuns },
  { title: "event to stored, p99 (s)", value: (row) => row.freshP99Seconds },
  { title: "drained after (s)", value: (row) => row.drainSeconds },
  { title: "slept in functions (s)", value: (row) => row.sleptSeconds },
  { title: "function seconds", value: (row) => row.functionSeconds },
];

const WIDTH = 800;
const LEFT = 90;
const BAR_WIDTH = 500;
const BAR = 18;
const GAP = 6;
const TITLE = 28;
const COLOURS = ["#1f6f4a", "#b5542b", "#8a6d1f", "#3a5a8c", "#6b4c8c", "#5a5a5a"];

/** One SVG for a scenario: a panel a figure, a bar a contestant; less is better in every panel. */
export function scenarioChart(title: string, rows: readonly Row[]): string {
  const height = TITLE + rows.length * (BAR + GAP) + 10;
  const panels = PANELS.map((panel, i) => panelSvg(panel, rows, 50 + i * height));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${60 + PANELS.length * height}" font-family="sans-serif" font-size="12">
<title>${escaped(title)}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="12" y="28" font-size="16">${escaped(title)}</text>
${panels.join("\n")}
</svg>
`;
}

function panelSvg({ title, value }: Panel, rows: readonly Row[], top: number): string {
  const values = rows.map(value);
  const most = Math.max(1, ...values.map((each) => (typeof each === "number" ? each : 0)));
  const bars = rows.map((row, i) => {
    const each = values[i] ?? null;
    const y = top + TITLE + i * (BAR + GAP);
    const width = each === "never" ? BAR_WIDTH : ((each ?? 0) / most) * BAR_WIDTH;
    const text = `${each ?? "n/a"}${row.valid ? "" : " (invalid: machine busy)"}`;
    const fill = each === "never" ? "#cccccc" : COLOURS[i % COLOURS.length];
    return `<text x="${LEFT - 8}" y="${y + 13}" text-anchor="end">${escaped(row.contestant)}</text>
<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${fill}"/>
<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 13}">${escaped(text)}</text>`;
  });
  return `<text x="12" y="${top + 14}" font-weight="bold">${escaped(title)}</text>\n${bars.join("\n")}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
