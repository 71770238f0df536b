import fc from "fast-check";

/** Texts that have made trouble somewhere: key separators, patterns, line ends, terminals, prototypes, paths, formats. */
export const hostileText: fc.Arbitrary<string> = fc.constantFrom(
  "a:b",
  "*",
  "?[a-z]",
  "acct-1\nsnaptrade:account:lock:holdings:acct-2",
  "acct-1\r\nSET x 1",
  "acct-1\0",
  "__proto__",
  "constructor",
  "toString",
  "../../etc/passwd",
  "..",
  "",
  " ",
  "x".repeat(129),
  "x".repeat(10_000),
  "error_1",
  "😀",
  "\ud83d",
  "\u202eacct",
  "\u001b[2Jacct",
  '"}\n{"level":"error","msg":"forged"}',
  "%s%s%n",
  "$(id)",
  "'; drop table snaptrade_users; --",
  "null",
  "undefined",
  "NaN",
);

/** Anything that may stand where a text is expected. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  fc.string({ unit: "binary" }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom({ length: {} }, { length: { toString: 1, valueOf: 1 } }, { length: 1e9 }, { toString: 1, toJSON: 1 }),
);

/** Names and values as HTTP lets them through: the known ones that change how a request is read, and any others. */
export const hostileHeaders: fc.Arbitrary<[string, string][]> = fc.array(
  fc.tuple(
    fc.oneof(
      fc.constantFrom(
        "content-type",
        "content-encoding",
        "transfer-encoding",
        "host",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-for",
        "forwarded",
        "authorization",
        "cookie",
        "upstash-signature",
        "upstash-retried",
        "upstash-message-id",
        "x-middleware-subrequest",
        "__proto__",
        "constructor",
      ),
      fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$/),
    ),
    // Bytes 0x20 to 0xff without DEL: what a header's value may hold (RFC 9110, 5.5).
    fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 60 }),
  ),
  { maxLength: 4 },
);
