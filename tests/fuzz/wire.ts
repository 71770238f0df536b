import fc from "fast-check";
import { hostileValue } from "@/tests/fuzz/hostile";
import {
  ACCOUNT,
  ACTIVITY,
  activities,
  BALANCE,
  CONNECTION,
  OPTION,
  ORDER,
  positions,
  STOCK,
} from "@/tests/unit/provider/wire-examples";

/** Good answers of each kind, empty ones among them. */
const EXAMPLES = [
  `[${BALANCE}]`,
  `[${ORDER},${ORDER}]`,
  `[${ACCOUNT}]`,
  ACCOUNT,
  `[${CONNECTION}]`,
  "[]",
  positions(STOCK, OPTION),
  positions(),
  activities([ACTIVITY, ACTIVITY]),
  activities([]),
];

type Change = { at: number; how: "set" | "delete" | "double" | "empty" | "wrap"; value: unknown };

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat({ max: 60 }),
  how: fc.constantFrom("set", "delete", "double", "empty", "wrap"),
  value: fc.oneof(
    hostileValue,
    fc.constantFrom<unknown>(null, true, "", [], {}, 0, -1, 1.5, 1e300, "1e999", "2026-13-01", { code: null }),
  ),
});

/** Texts near SnapTrade's answers: a few values changed, gone, doubled or emptied; cut; or anything at all. */
export const answerText: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(...EXAMPLES), fc.array(change, { maxLength: 3 }))
      .map(([text, changes]) => JSON.stringify(changes.reduce<unknown>(changed, JSON.parse(text)))),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...EXAMPLES), fc.nat({ max: 2000 }), fc.constantFrom("", "\0", "}", ",", "<html>"))
      .map(([text, at, put]) => text.slice(0, at % (text.length + 1)) + put),
  },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(["[", "]"], ['{"a":', "}"], ['{"results":', "}"]), fc.nat({ max: 8_000 }))
      .map(
        ([[open = "", close = ""], depth]) => `[{"currency":"USD","x":${open.repeat(depth)}1${close.repeat(depth)}}]`,
      ),
  },
);

type Container = unknown[] | Record<string, unknown>;

function changed(root: unknown, { at, how, value: given }: Change): unknown {
  const value: unknown = structuredClone(given);
  const places = placesIn(root);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return how === "set" ? value : root;
  const [holder, key] = place;
  if (Array.isArray(holder)) changeItem(holder, Number(key), how, value);
  else changeMember(holder, key, how, value);
  return root;
}

function changeItem(list: unknown[], at: number, how: Change["how"], value: unknown): void {
  if (how === "set") list[at] = value;
  else if (how === "wrap") list[at] = [list[at]];
  else if (how === "double") list.push(structuredClone(list[at]));
  else if (how === "empty") list.splice(0);
  else list.splice(at, 1);
}

function changeMember(object: Record<string, unknown>, key: string, how: Change["how"], value: unknown): void {
  const now = object[key];
  if (how === "set") object[key] = value;
  else if (how === "wrap") object[key] = { value: now };
  else if (how === "empty") object[key] = Array.isArray(now) ? [] : typeof now === "string" ? "" : {};
  else if (how === "double") object[`${key}_`] = structuredClone(now);
  else delete object[key];
}

/** Every place of a value at which another can stand. */
function placesIn(value: unknown): [Container, string][] {
  if (typeof value !== "object" || value === null) return [];
  const holder: Container = Array.isArray(value) ? value : Object.assign(value);
  return Object.entries(holder).flatMap(([key, member]): [Container, string][] => [[holder, key], ...placesIn(member)]);
}
