import { type EChartsOption, format, init } from "echarts";
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

const COLUMNS = 2;
const SIZE = { width: 1_000, title: 60, panelTitle: 24, bar: 22, gap: 30 };
const COLUMN_WIDTH = SIZE.width / COLUMNS;
const LABELS = 120;
/** Room behind the longest bar for its figure. */
const FIGURES = 150;
const COLOURS = { own: "#1f6f4a", other: "#8a93a0", never: "#e4b7a6" };

/** One SVG for a scenario: a panel a figure, a bar a contestant, the first one's in green; less is better in every panel. */
export function scenarioChart(title: string, rows: readonly Row[]): string {
  const shown = PANELS.filter(({ value }) => rows.some((row) => value(row) !== null));
  const bars = rows.length * SIZE.bar;
  const panelHeight = SIZE.panelTitle + bars + SIZE.gap;
  const height = SIZE.title + Math.ceil(shown.length / COLUMNS) * panelHeight;
  const places = shown.map((_, i) => ({
    left: (i % COLUMNS) * COLUMN_WIDTH,
    top: SIZE.title + Math.floor(i / COLUMNS) * panelHeight,
  }));
  const chart = init(null, null, { renderer: "svg", ssr: true, width: SIZE.width, height });
  const option: EChartsOption = {
    animation: false,
    backgroundColor: "#ffffff",
    title: [
      { text: title, subtext: "less is better; this service is green", left: 12, top: 6 },
      ...shown.map((panel, i) => ({ text: panel.title, textStyle: { fontSize: 13 }, ...placed(places[i], 12, 0) })),
    ],
    grid: places.map((place) => ({
      ...placed(place, LABELS, SIZE.panelTitle),
      width: COLUMN_WIDTH - LABELS - FIGURES,
      height: bars,
    })),
    xAxis: shown.map((_, i) => ({ gridIndex: i, show: false, type: "value", min: 0 })),
    yAxis: shown.map((_, i) => ({
      ...{ gridIndex: i, type: "category", inverse: true, data: rows.map(({ contestant }) => contestant) },
      ...{ axisLine: { show: false }, axisTick: { show: false }, axisLabel: { color: "#333333" } },
    })),
    series: shown.map(({ value }, i) => ({
      ...{ type: "bar", xAxisIndex: i, yAxisIndex: i, barWidth: SIZE.bar - 6, data: barsOf(rows, value) },
      silent: true,
      emphasis: { disabled: true },
      label: { show: true, position: "right", color: "#333333" },
    })),
  };
  chart.setOption(option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  // For those who cannot see it, and for who points at it.
  return `${svg.replace(">", () => `><title>${format.encodeHTML(title)}</title>`)}\n`;
}

function placed(place: { left: number; top: number } | undefined, right: number, down: number) {
  return { left: (place?.left ?? 0) + right, top: (place?.top ?? 0) + down };
}

/** What never came is as long as the longest bar, in a colour of its own; what a contestant cannot have is no bar. */
function barsOf(rows: readonly Row[], value: Panel["value"]) {
  const figures = rows.map(value);
  const most = Math.max(1, ...figures.map((figure) => (typeof figure === "number" ? figure : 0)));
  return rows.map((row, i) => {
    const figure = figures[i] ?? null;
    const color = figure === "never" ? COLOURS.never : i === 0 ? COLOURS.own : COLOURS.other;
    const formatter = `${figure ?? "n/a"}${row.valid ? "" : " (machine busy)"}`;
    return { value: figure === "never" ? most : (figure ?? 0), itemStyle: { color }, label: { formatter } };
  });
}
