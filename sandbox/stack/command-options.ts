import { InvalidArgumentError } from "commander";

/** Reads a whole number within bounds, both inclusive. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
  };
}

/** Reads a number above 0, such as 0.5. */
export function positiveNumber(text: string): number {
  const number = Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new InvalidArgumentError("Expected a number above 0.");
}

/** Collects `KEY=VALUE`; the value may hold any character, also none. */
export function collectEnv(text: string, before: Record<string, string>): Record<string, string> {
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=([\s\S]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Expected KEY=VALUE.");
  return { ...before, [name]: value };
}
