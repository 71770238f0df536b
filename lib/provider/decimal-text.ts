/**
 * Decimal numbers as text. The service never computes with them: what the wire said is what is stored, so no number
 * of the provider ever passes through a JavaScript `number`, which keeps about 17 digits.
 */

// No part can match the same characters twice, so a long hostile text costs linear time.
const DECIMAL = /^([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d{1,4}))?$/;

// Both hold the largest double (1.8e308, used by some brokerages for "unlimited") and stay far inside Postgres numeric.
const MAX_LENGTH = 400;
const MAX_EXPONENT = 400;

/** True if Postgres `numeric` accepts the text as a finite number of a sane size: no NaN, no Infinity, no spaces. */
export function isDecimalText(text: string): boolean {
  if (text.length > MAX_LENGTH) return false;
  const match = DECIMAL.exec(text);
  return match !== null && Math.abs(Number(match[5] ?? "0")) <= MAX_EXPONENT;
}

/** One spelling for each value, so that `1`, `1.00` and `10e-1` compare equal. For comparing only, never for storing. */
export function canonicalDecimal(text: string): string {
  const match = DECIMAL.exec(text);
  if (!match) return text;
  const [, sign = "", whole = "", fraction = match[4] ?? "", , exponent = "0"] = match;
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  const scale = Number(exponent) - fraction.length + (digits.length - significant.length);
  return `${sign === "-" ? "-" : ""}${significant}e${scale}`;
}
