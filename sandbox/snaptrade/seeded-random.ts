import { createHash } from "node:crypto";

export type Random = {
  /** 0 <= n < below */
  int(below: number): number;
  pick<T>(list: readonly T[]): T;
  uuid(): string;
  /** Decimal digits, the first one not 0. */
  digits(count: number): string;
};

/** The same words give the same numbers on every machine (mulberry32 over the first word of a SHA-256). */
export function seededRandom(...words: (string | number)[]): Random {
  let state = createHash("sha256").update(words.join("\u0000")).digest().readUInt32LE(0);

  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (below: number): number => Math.floor(next() * below);

  return {
    int,
    pick(list) {
      const chosen = list[int(list.length)];
      if (chosen === undefined) throw new Error("Cannot pick from an empty list");
      return chosen;
    },
    uuid() {
      const hex = Array.from({ length: 8 }, () => int(0x10000).toString(16).padStart(4, "0")).join("");
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
    digits(count) {
      return Array.from({ length: count }, (_, i) => (i === 0 ? 1 + int(9) : int(10))).join("");
    },
  };
}

/**
 * A positive decimal in one of the forms that a JavaScript number loses or rewrites: trailing zero, integral float,
 * exponent, more digits than a double holds, a repeating fraction.
 */
export function awkwardDecimal(random: Random): string {
  const whole = random.digits(1 + random.int(4));
  return random.pick([
    `${whole}.50`,
    `${whole}.0`,
    `${whole}00.00`,
    `${whole}.333333333`,
    `${whole}.${random.digits(2)}`,
    `123456789.123456789`,
    `${random.digits(1)}e-8`,
    whole,
  ]);
}
