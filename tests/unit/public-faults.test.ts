import { existsSync, readFileSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";

const MAP = "tests/public-faults.md";

/** The cases of the list. Numbers that are missing here are gaps of the list. */
const CASES = [
  ...[1, 2, 4, 5, 8, 9, 11, 12, 13, 15, 16, 17, 19, 20, 22, 23, 25, 26, 27, 29, 30, 32, 33, 35, 36, 37, 39, 40, 41],
  ...[44, 46, 47, 48, 49, 50, 51, 53, 55, 56, 58, 59, 60, 61, 63, 64, 66, 67, 68, 70, 71, 73, 75, 76, 77, 79, 80, 81],
  ...[83, 84, 86, 87, 89, 91, 92, 93, 96, 97, 98, 100, 101, 102, 104, 107, 109, 111, 112, 113, 115],
].map((number) => `B${String(number).padStart(2, "0")}`);

type Row = { id: string; kind: string; shownBy: string };

function rowsOf(text: string): Row[] {
  const lines = text.split("\n").filter((line) => /^\| B\d/.test(line));
  return lines.map((line) => {
    const [, id = "", kind = "", shownBy = ""] = line.split("|").map((cell) => cell.trim());
    return { id, kind, shownBy };
  });
}

/** "`file` › describe › test", several with a line break between them. */
function testsOf({ shownBy }: Row): { file: string; title: string }[] {
  return shownBy.split("<br>").map((entry) => {
    const [, file = "", title = ""] = /^`([^`]+)` › (.+)$/.exec(entry.trim()) ?? [];
    return { file, title };
  });
}

/** The titles of the tests of a file that run, each behind those of its describes. */
function titlesOf(file: string): Set<string> {
  const titles = new Set<string>();
  const visit = (node: ts.Node, path: string[]): void => {
    const found = ts.isCallExpression(node) ? titled(node) : undefined;
    const inner = found === undefined ? path : [...path, found.title];
    if (found?.isTest) titles.add(inner.join(" › "));
    node.forEachChild((child) => visit(child, inner));
  };
  visit(ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest), []);
  return titles;
}

/** `test("...")`, `it.each(...)("...")`, `describe("...")`; what is skipped or left to do is none. */
function titled(call: ts.CallExpression): { title: string; isTest: boolean } | undefined {
  const [first] = call.arguments;
  let callee: ts.Expression = call.expression;
  while (ts.isCallExpression(callee) || ts.isPropertyAccessExpression(callee)) {
    if (ts.isPropertyAccessExpression(callee) && /skip|todo|fails|runIf/i.test(callee.name.text)) return undefined;
    callee = callee.expression;
  }
  if (first === undefined || !ts.isStringLiteralLike(first) || !ts.isIdentifier(callee)) return undefined;
  if (!/^(describe|it|test)$/.test(callee.text)) return undefined;
  return { title: first.text, isTest: callee.text !== "describe" };
}

const rows = rowsOf(readFileSync(MAP, "utf8"));

test("every case of the public faults has its row, in order, with the kind of fault", () => {
  expect(rows.map(({ id }) => id)).toEqual(CASES);
  expect(rows.filter(({ kind }) => kind.length < 10)).toEqual([]);
});

test("every row names tests that exist under that very name, or says why the case cannot apply", () => {
  const known = new Map<string, Set<string>>();
  const missing = rows
    .filter(({ shownBy }) => !/^cannot apply: .{20,}/.test(shownBy))
    .flatMap((row) => testsOf(row).map(({ file, title }) => ({ id: row.id, file, title })))
    .filter(({ file, title }) => {
      if (!/^tests\/.+\.test\.ts$/.test(file) || !existsSync(file)) return true;
      const titles = known.get(file) ?? titlesOf(file);
      known.set(file, titles);
      return !titles.has(title);
    });
  expect(missing).toEqual([]);
});
