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

  const word = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const int = (below: number): number => Math.floor((word() / 2 ** 32) * below);
  const hexWord = (): string => word().toString(16).padStart(8, "0");

  return {
    int,
    pick(list) {
      const chosen = list[int(list.length)];
      if (chosen === undefined) throw new Error("Cannot pick from an empty list");
      return chosen;
    },
    uuid() {
      const [a, b, c, d] = [hexWord(), hexWord(), hexWord(), hexWord()];
      return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-a${c.slice(1, 4)}-${c.slice(4)}${d}`;
    },
    digits(count) {
      let digits = String(1 + int(9));
      while (digits.length < count) digits += String(int(10));
      return digits;
    },
  };
}

/**
 * A positive decimal in one of the forms that a JavaScript number loses or rewrites: trailing zero, integral float,
 * exponent, more digits than a double holds, a repeating fraction.
 */
export function awkwardDecimal(random: Random): string {
  const whole = random.digits(1 + random.int(4));
  switch (random.int(8)) {
    case 0:
      return `${whole}.50`;
    case 1:
      return `${whole}.0`;
    case 2:
      return `${whole}00.00`;
    case 3:
      return `${whole}.333333333`;
    case 4:
      return `${whole}.${random.digits(2)}`;
    case 5:
      return "123456789.123456789";
    case 6:
      return `${random.digits(1)}e-8`;
    default:
      return whole;
  }
}
