import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";

const LIB = path.resolve(import.meta.dirname, "../../lib");

it('no schema uses zod\'s length checks: they run on values of other types too, and throw on {"length": {}} (I9)', () => {
  const files = readdirSync(LIB, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  expect(files.length).toBeGreaterThan(50);
  const check = /z\s*\.(?:string|array)\([^;,]*\)\s*\.(?:min|max|length|nonempty)\(/;
  expect(files.filter((file) => check.test(readFileSync(path.join(LIB, file), "utf8")))).toEqual([]);
});
