export type RetryDelay = { source: string; evaluate(retried: number): number };

type Node = (retried: number) => number;

const LONGEST_SOURCE = 500;
const DEEPEST_NESTING = 50;

/** Name to [least arguments, most arguments, function] (QStash docs, features/retry, "Supported functions"). */
const FUNCTIONS = new Map<string, [number, number, (...args: number[]) => number]>([
  ["pow", [2, 2, Math.pow]],
  ["sqrt", [1, 1, Math.sqrt]],
  ["abs", [1, 1, Math.abs]],
  ["exp", [1, 1, Math.exp]],
  ["floor", [1, 1, Math.floor]],
  ["ceil", [1, 1, Math.ceil]],
  ["round", [1, 1, Math.round]],
  ["min", [1, 16, Math.min]],
  ["max", [1, 16, Math.max]],
]);

/**
 * Parses an `Upstash-Retry-Delay` expression: numbers, `retried` (0 for the first retry), + - * / %, parentheses and the nine
 * documented functions. The result is in milliseconds. Returns the reason if it is no such expression. Nothing is ever evaluated as
 * code.
 */
export function parseRetryDelay(source: string): RetryDelay | { error: string } {
  if (source.length > LONGEST_SOURCE) return { error: `longer than ${LONGEST_SOURCE} characters` };
  try {
    const evaluate = new Parser(tokenize(source)).parse();
    return { source, evaluate };
  } catch (error) {
    if (error instanceof SyntaxError) return { error: error.message };
    throw error;
  }
}

function tokenize(source: string): string[] {
  const tokens = source.match(/\d+(?:\.\d+)?|[a-z]+|[-+*/%(),]|\S/g) ?? [];
  if (tokens.length === 0) throw new SyntaxError("empty expression");
  return tokens;
}

class Parser {
  #position = 0;
  #depth = 0;

  constructor(private readonly tokens: string[]) {}

  parse(): Node {
    const node = this.#sum();
    if (this.#peek() !== undefined) throw new SyntaxError(`unexpected "${this.#peek()}"`);
    return node;
  }

  #sum(): Node {
    let left = this.#product();
    for (let operator = this.#take("+", "-"); operator; operator = this.#take("+", "-")) {
      const [a, b] = [left, this.#product()];
      left = operator === "+" ? (retried) => a(retried) + b(retried) : (retried) => a(retried) - b(retried);
    }
    return left;
  }

  #product(): Node {
    let left = this.#unary();
    for (let operator = this.#take("*", "/", "%"); operator; operator = this.#take("*", "/", "%")) {
      const [a, b] = [left, this.#unary()];
      if (operator === "*") left = (retried) => a(retried) * b(retried);
      else if (operator === "/") left = (retried) => a(retried) / b(retried);
      else left = (retried) => a(retried) % b(retried);
    }
    return left;
  }

  #unary(): Node {
    if (++this.#depth > DEEPEST_NESTING) throw new SyntaxError("nested too deeply");
    const negative = this.#take("-") !== undefined;
    const operand = negative ? this.#unary() : this.#atom();
    this.#depth--;
    return negative ? (retried) => -operand(retried) : operand;
  }

  #atom(): Node {
    const token = this.#next();
    if (/^\d/.test(token)) {
      const value = Number(token);
      return () => value;
    }
    if (token === "retried") return (retried) => retried;
    if (token === "(") {
      const inner = this.#sum();
      this.#expect(")");
      return inner;
    }
    const known = FUNCTIONS.get(token);
    if (known === undefined) throw new SyntaxError(`unexpected "${token}"`);
    const [least, most, apply] = known;
    const args = this.#arguments();
    if (args.length < least || args.length > most) throw new SyntaxError(`wrong number of arguments for ${token}`);
    return (retried) => apply(...args.map((argument) => argument(retried)));
  }

  #arguments(): Node[] {
    this.#expect("(");
    const args = [this.#sum()];
    while (this.#take(",") !== undefined) args.push(this.#sum());
    this.#expect(")");
    return args;
  }

  #peek(): string | undefined {
    return this.tokens[this.#position];
  }

  #next(): string {
    const token = this.#peek();
    if (token === undefined) throw new SyntaxError("unexpected end");
    this.#position++;
    return token;
  }

  #take(...wanted: string[]): string | undefined {
    const token = this.#peek();
    if (token === undefined || !wanted.includes(token)) return undefined;
    this.#position++;
    return token;
  }

  #expect(wanted: string): void {
    const token = this.#next();
    if (token !== wanted) throw new SyntaxError(`expected "${wanted}", not "${token}"`);
  }
}
