import fc from "fast-check";
import { expect, test } from "vitest";
import { parseRetryDelay } from "@/sandbox/qstash/retry-delay-expression";

function evaluate(source: string, retried = 0): number {
  const parsed = parseRetryDelay(source);
  if ("error" in parsed) throw new Error(parsed.error);
  return parsed.evaluate(retried);
}

test.each([
  ["1000", 2, 1_000],
  ["1000 * (1 + retried)", 0, 1_000],
  ["1000 * (1 + retried)", 2, 3_000],
  ["pow(2, retried) * 1000", 0, 1_000],
  ["pow(2, retried) * 1000", 3, 8_000],
  ["max(1000, pow(2, retried) * 100)", 0, 1_000],
  ["max(1000, pow(2, retried) * 100)", 5, 3_200],
])("the documented example %s gives %d -> %d ms", (source, retried, expected) => {
  expect(evaluate(source, retried)).toBe(expected);
});

test.each([
  ["sqrt(16)", 4],
  ["abs(-3)", 3],
  ["exp(0)", 1],
  ["floor(1.9)", 1],
  ["ceil(1.1)", 2],
  ["round(1.5)", 2],
  ["min(3, 2)", 2],
  ["2 + 3 * 4", 14],
  ["(2 + 3) * 4", 20],
  ["10 - 4 - 3", 3],
  ["-2 + 5", 3],
  ["7 % 4 / 2", 1.5],
])("%s is %d", (source, expected) => {
  expect(evaluate(source)).toBe(expected);
});

test.each([
  "",
  "1 +",
  "pow(2)",
  "sqrt(1, 2)",
  "unknown(1)",
  "retried2",
  "1 2",
  "(1",
  "process.exit(1)",
  "constructor",
  "(() => 1)()",
  "toString()",
  "1; 2",
  "(".repeat(400),
  `${"-".repeat(400)}1`,
  "1".repeat(501),
])("%j is refused, not run", (source) => {
  expect(parseRetryDelay(source)).toHaveProperty("error");
});

type Known = { text: string; value: number };
const known = fc.letrec<{ known: Known }>((tie) => ({
  known: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.nat({ max: 1_000 }).map((value) => ({ text: String(value), value })),
    fc.constant({ text: "retried", value: 3 }),
    fc.tuple(tie("known"), fc.constantFrom("+", "-", "*"), tie("known")).map(([a, operator, b]) => ({
      text: `(${a.text} ${operator} ${b.text})`,
      value: apply(a.value, operator, b.value),
    })),
    fc
      .tuple(tie("known"), tie("known"))
      .map(([a, b]) => ({ text: `max(${a.text},${b.text})`, value: Math.max(a.value, b.value) })),
    tie("known").map((a) => ({ text: `-${a.text}`, value: -a.value })),
  ),
})).known;

function apply(a: number, operator: string, b: number): number {
  if (operator === "+") return a + b;
  return operator === "-" ? a - b : a * b;
}

test("any expression built of its parts has the value of its parts", () => {
  fc.assert(
    fc.property(known, ({ text, value }) => {
      fc.pre(text.length <= 500);
      expect(evaluate(text, 3)).toBeCloseTo(value, 6);
    }),
  );
});
