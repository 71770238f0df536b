import Table from "cli-table3";
import ms from "ms";
import { createColors } from "picocolors";

/** On a terminal alone: by itself the library colours whatever runs where `CI` is set, also what goes into a file. */
export const colors = createColors(process.stdout.isTTY === true);

/** `1 account`, `2 accounts`. */
export function counted(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

/** Text of others (an error that SnapTrade sent) must not move the cursor or end the line of a terminal. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}

/** The beginning of a text that is too long for a table. */
export function cut(text: string, characters: number): string {
  return text.length > characters ? `${text.slice(0, characters - 3)}...` : text;
}

/** `in 5m`, `3h ago`; empty where there is no time. */
export function fromNow(time: string | null, now: number): string {
  if (time === null) return "";
  const ahead = Date.parse(time) - now;
  return ahead > 0 ? `in ${ms(ahead)}` : `${ms(-ahead)} ago`;
}

/** Columns without lines: every row can be cut, searched and pasted. */
export function table(head: string[], rows: string[][]): string {
  const chars = { top: "", "top-mid": "", "top-left": "", "top-right": "", bottom: "", "bottom-mid": "" } as const;
  const more = { "bottom-left": "", "bottom-right": "", left: "", "left-mid": "", mid: "", "mid-mid": "" } as const;
  const rest = { right: "", "right-mid": "", middle: "  " } as const;
  const made = new Table({
    head: head.map((title) => colors.dim(title)),
    chars: { ...chars, ...more, ...rest },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
  made.push(...rows);
  return made
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
