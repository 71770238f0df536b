import fc from "fast-check";
import { expect, test } from "vitest";
import { createLogger, type Logger } from "@/lib/log";

const SECRETS = ["marker-plain-secret", 'marker-"quoted"\\secret', "marker/with+signs=", "short"];

function capture(write: (log: Logger) => void): string[] {
  const lines: string[] = [];
  write(createLogger({ secrets: SECRETS, level: "debug", destination: { write: (line) => lines.push(line) } }));
  return lines;
}

function lineOf(write: (log: Logger) => void): Record<string, unknown> {
  const [line = "", ...more] = capture(write);
  expect(more).toEqual([]);
  expect(line.indexOf("\n")).toBe(line.length - 1);
  return JSON.parse(line);
}

test("a line is one JSON object with time, level, fields and message", () => {
  const line = lineOf((log) =>
    log.child({ route: "webhook" }).warn({ webhookId: "w-1", attempts: 2 }, "Duplicate webhook"),
  );
  expect(line).toEqual({
    level: "warn",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.+Z$/),
    route: "webhook",
    webhookId: "w-1",
    attempts: 2,
    msg: "Duplicate webhook",
  });
});

/** What a terminal or a line reader acts on. */
function isControl(character: string): boolean {
  const code = character.charCodeAt(0);
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029;
}

test.each([
  ["CR and LF", 'ok"}\r\n{"level":"error","msg":"forged"}'],
  ["an ANSI escape", "\u001b[2K\u001b[1Aforged"],
  ["a C1 control", "\u009b2Kforged"],
  ["Unicode line ends", "a\u2028b\u2029c\u0085d"],
  ["DEL", "a\u007fb"],
  ["a format", "%s %d %j %o"],
])("%s in a value, a name or a message forges no line and reaches no terminal (B111)", (_, text) => {
  const lines = capture((log) => log.info({ eventType: text, [text]: 1, nested: { list: [text] } }, text));
  expect(lines).toHaveLength(1);
  const [line = ""] = lines;
  expect(JSON.parse(line)).toMatchObject({ level: "info" });
  expect([...line.trimEnd()].filter(isControl)).toEqual([]);
});

test("any text whatever makes exactly one line of JSON", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.jsonValue(), (text, value) => {
      const lines = capture((log) => log.info({ value, [text]: text }, text));
      expect(lines).toHaveLength(1);
      expect(() => JSON.parse(lines[0] ?? "")).not.toThrow();
    }),
  );
});

test("values are cut, so that a megabyte of payload makes a short line", () => {
  const big = "x".repeat(1_000_000);
  const many = Array.from({ length: 10_000 }, () => big);
  const [line = ""] = capture((log) => log.info({ big, many, [big]: 1, deep: { big } }, big));
  expect(line.length).toBeLessThan(250_000);
  expect(JSON.parse(line)).toMatchObject({ msg: `${"x".repeat(1000)}... (1000000 characters)` });
});

test("an object that contains itself is cut", () => {
  const loop: Record<string, unknown> = { name: "loop" };
  loop.self = loop;
  loop.all = [loop, loop];
  const [line = ""] = capture((log) => log.info({ loop }, "loop"));
  expect(line.length).toBeLessThan(20_000);
  expect(line).toContain("[cut]");
});

test("no known secret appears, whatever carries it and however it is written (B113)", () => {
  const [plain = "", quoted = "", signs = ""] = SECRETS;
  const cause = new Error(`cause ${quoted}`);
  const error = Object.assign(new Error(`failed with ${plain}`, { cause }), {
    url: `https://x/?k=${encodeURIComponent(signs)}`,
  });
  const [line = ""] = capture((log) =>
    log.child({ bound: plain }).error(
      {
        error,
        text: `a${plain}b`,
        json: JSON.stringify({ quoted }),
        [plain]: 1,
        list: [[signs]],
        url: new URL(`https://h/${signs}`),
      },
      quoted,
    ),
  );
  expect(line).toContain("failed with [redacted]");
  expect(line).toContain("cause [redacted]");
  expect(line).not.toContain("marker");
});

test("a secret that a cut would halve is not left over", () => {
  const [line = ""] = capture((log) => log.info({ text: `${"x".repeat(990)}marker-plain-secret` }, "cut"));
  expect(line).not.toContain("marker");
});

test.each([
  ["a bearer token", { note: "Authorization: Bearer marker" }],
  ["a user's secret in a URL", { url: "https://api.snaptrade.com/accounts?userId=u&userSecret=marker&x=1" }],
  ["a signature in a URL", { url: "/x?Signature=marker" }],
  ["a secret in a body that is logged as text", { body: '{"webhookSecret": "marker"}' }],
  ["a secret in a body inside a body", { body: JSON.stringify({ sourceBody: '{"userSecret":"marker"}' }) }],
  ["a field by its name", { userSecret: "marker", headers: { Authorization: "marker", cookie: ["marker"] } }],
  [
    "an error's own field",
    { error: Object.assign(new Error("x"), { config: { headers: { "x-api-token": "marker" } } }) },
  ],
])("%s is not logged although nobody knows it beforehand", (_, fields) => {
  const [line = ""] = capture((log) => log.info(fields, "note"));
  expect(line).toContain("[redacted]");
  expect(line).not.toContain("marker");
});

test("errors, dates, bytes and numbers stay readable", () => {
  const error = Object.assign(new TypeError("bad", { cause: new Error("worse") }), { code: "E1" });
  const line = lineOf((log) =>
    log.error({ error, at: new Date(0), bytes: new Uint8Array(3), big: 7n, none: undefined, fn: () => 1 }, "x"),
  );
  expect(line).toMatchObject({
    error: {
      name: "TypeError",
      message: "bad",
      code: "E1",
      stack: expect.stringContaining("TypeError: bad"),
      cause: { message: "worse" },
    },
    at: "1970-01-01T00:00:00.000Z",
    bytes: "[3 bytes]",
    big: "7",
  });
  expect(line).not.toHaveProperty("none");
  expect(line).not.toHaveProperty("fn");
});

test("a secret too short to be one does not blot out words", () => {
  expect(lineOf((log) => log.info({ note: "in short" }, "x"))).toMatchObject({ note: "in short" });
});
