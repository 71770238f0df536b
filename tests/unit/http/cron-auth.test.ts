import { expect, test } from "vitest";
import { isCronRequest } from "@/lib/http/cron-auth";

const SECRET = "a-cron-secret-of-some-length";

function isAllowed(authorization: string | null, secret: string | undefined): boolean {
  const headers = authorization === null ? undefined : { authorization };
  return isCronRequest(new Request("http://service.test/", headers && { headers }), secret);
}

const anyHeader = [
  null,
  "",
  "Bearer undefined",
  "Bearer ",
  "Bearer",
  "Bearer null",
  "bearer x",
  `Bearer ${SECRET}`,
  "undefined",
];

test.each(["", " ", "\n", undefined])("the secret %j opens nothing to anyone (B83)", (secret) => {
  for (const header of [...anyHeader, `Bearer ${secret}`]) expect(isAllowed(header, secret)).toBe(false);
});

test.each([
  ["none", null],
  ["an empty one", ""],
  ["undefined", "Bearer undefined"],
  ["null", "Bearer null"],
  ["no token", "Bearer "],
  ["the secret without a scheme", SECRET],
  ["another scheme", `Basic ${SECRET}`],
  ["a wrong one", "Bearer a-wrong-secret-of-some-length"],
  ["a prefix", `Bearer ${SECRET.slice(0, -1)}`],
  ["a longer one", `Bearer ${SECRET}x`],
  ["another case", `Bearer ${SECRET.toUpperCase()}`],
  ["two", `Bearer ${SECRET}, Bearer ${SECRET}`],
  ["10 kB", `Bearer ${"x".repeat(10_000)}`],
])("with a secret set, a header with %s is refused", (_, header) => {
  expect(isAllowed(header, SECRET)).toBe(false);
});

test.each([`Bearer ${SECRET}`, `bearer ${SECRET}`, `BEARER  ${SECRET}`])(
  "the bearer of the secret is let in: %s",
  (header) => {
    expect(isAllowed(header, SECRET)).toBe(true);
  },
);
