import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalDecimal, isDecimalText } from "@/lib/provider/decimal-text";

describe("what Postgres numeric would refuse is no number", () => {
  test.each([
    "0",
    "-0",
    "+5",
    "12.50",
    "100.0",
    ".5",
    "5.",
    "1e-8",
    "1E+2",
    "0.123456789012345678",
    "1.7976931348623157e308",
  ])("%j is one", (text) => expect(isDecimalText(text)).toBe(true));
  test.each([
    "",
    " ",
    "7 ",
    "NaN",
    "Infinity",
    "-inf",
    "1_000",
    "1,5",
    "0x10",
    "1e",
    "1e401",
    "1e99999",
    ".",
    "--1",
    "12a",
    "1 2",
  ])("%j is none", (text) => expect(isDecimalText(text)).toBe(false));
  test("a text of absurd length is none", () => {
    expect(isDecimalText("1".repeat(400))).toBe(true);
    expect(isDecimalText("1".repeat(401))).toBe(false);
  });
});

describe("numbers are compared by value", () => {
  test.each([
    ["1", "1.00"],
    ["1", "10e-1"],
    ["0.10", ".1"],
    ["100", "1E2"],
    ["0", "-0.000"],
    ["-12.50", "-12.5"],
    ["+3", "3"],
    ["0.00000001", "1e-8"],
    ["007", "7"],
  ])("%s equals %s", (a, b) => expect(canonicalDecimal(a)).toBe(canonicalDecimal(b)));

  test.each([
    ["1", "10"],
    ["1", "-1"],
    ["0.1", "0.01"],
    ["0.123456789012345678", "0.123456789012345679"],
    ["1e8", "1e-8"],
  ])("%s differs from %s", (a, b) => expect(canonicalDecimal(a)).not.toBe(canonicalDecimal(b)));

  test("any number equals itself with its point moved and zeros added", () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.nat(20), fc.nat(20), (value, shift, zeros) => {
        const shifted = `${value}${"0".repeat(shift)}e-${shift}`;
        expect(canonicalDecimal(shifted)).toBe(canonicalDecimal(`${value}.${"0".repeat(zeros)}`));
      }),
    );
  });
});
