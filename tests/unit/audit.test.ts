import { expect, test } from "vitest";
import { readAudit } from "@/tests/audit";

const report = (counts: object) =>
  JSON.stringify({ metadata: { vulnerabilities: { low: 0, moderate: 0, high: 0, critical: 0, ...counts } } });

test.each<[string, string, number]>([
  ["nothing", report({}), 0],
  ["what is below high", report({ low: 3, moderate: 2 }), 0],
  ["a high one", report({ high: 1 }), 1],
  ["a critical one", report({ critical: 1 }), 1],
  ["a registry that fails", '{"message":"503 Service Unavailable","statusCode":503}', 1],
  ["a registry that cannot be reached", '{"message":"request failed, reason: ECONNREFUSED"}', 1],
  ["no JSON", "npm error", 1],
  ["no output", "", 1],
])("the audit of %s ends as it should: %#", (_, output, exit) => {
  expect(readAudit(output).exit).toBe(exit);
});

test.each([404, 405, 501])(
  "a registry that answers %d has no audit endpoint: said plainly, and no failure",
  (statusCode) => {
    const { exit, text } = readAudit(JSON.stringify({ message: `${statusCode} - POST https://registry`, statusCode }));
    expect([exit, text]).toEqual([0, expect.stringContaining("Not audited: this registry has no audit endpoint")]);
  },
);
