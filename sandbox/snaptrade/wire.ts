/**
 * JSON of the simulator. Numbers keep the text in which they are written (`12.50`, `1e-8`, `100.0`), because that text
 * is what a client must not lose and what `JSON.parse` would destroy.
 */
import { isLosslessNumber, LosslessNumber, parse, stringify } from "lossless-json";

/** Plain `number` is for small integers of our own (codes, offsets); what stands for money or units is a LosslessNumber. */
type Wire = null | boolean | string | number | LosslessNumber | readonly Wire[] | WireObject;
export type WireObject = { [key: string]: Wire };

/** A number that is written exactly as `text`. Throws when `text` is no JSON number. */
export function num(text: string): LosslessNumber {
  return new LosslessNumber(text);
}

/** What the parser returned for a JSON object (its members are Wire by construction). */
export function isWireObject(value: unknown): value is WireObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isLosslessNumber(value);
}

/** JSON text; LosslessNumbers go out as they are written. */
export function writeWire(value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new Error("A wire value must be JSON; got undefined");
  return text;
}

/** Throws SyntaxError on text that is not JSON, and on a key that is repeated with another value. */
export function readWire(text: string): unknown {
  return parse(text);
}
