import { expect, test } from "vitest";
import { envOf } from "@/tests/unit/required-env";

/** What is allowed but unwise: the service starts, and says so in one line. */

test.each([
  ["200", "100", "6000 provider calls a minute, 2400 %"],
  ["50", "101", "1500 provider calls a minute, 600 %"],
  ["1000", "1000", "30000 provider calls a minute"],
])("parallelism %s and rate %s start with one warning line of what they mean", (parallelism, rate, meaning) => {
  const { warnings } = envOf({ SNAPTRADE_QSTASH_PARALLELISM: parallelism, SNAPTRADE_QSTASH_RATE: rate });
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain(meaning);
  expect(warnings[0]).not.toContain("\n");
});

test.each(["5", "50", "75", "100"])("parallelism and rate %s start without a word", (value) => {
  expect(envOf({ SNAPTRADE_QSTASH_PARALLELISM: value, SNAPTRADE_QSTASH_RATE: value }).warnings).toEqual([]);
});

test.each([
  ["0.96", "250", "252 calls in a window, of the contract's 250"],
  ["0.99", "4000", "4160 calls"],
  ["0.75", "12", "13 calls"],
])("a share of %s of %s calls warns: background work alone could be answered 429", (share, limit, meaning) => {
  const { warnings } = envOf({ SNAPTRADE_BACKGROUND_SHARE: share, SNAPTRADE_RATE_LIMIT_PER_MINUTE: limit });
  expect(warnings).toEqual([expect.stringContaining(meaning)]);
  expect(warnings[0]).toMatch(/^SNAPTRADE_BACKGROUND_SHARE=/);
});

test.each([
  ["0.75", "60"],
  ["0.9", "250"],
  ["0.94", "4000"],
])("a share of %s of %s calls starts without a word", (share, limit) => {
  const { warnings } = envOf({ SNAPTRADE_BACKGROUND_SHARE: share, SNAPTRADE_RATE_LIMIT_PER_MINUTE: limit });
  expect(warnings).toEqual([]);
});

test("a maximum age above the retention warns, because a pruned event could be accepted again", () => {
  expect(envOf({ SNAPTRADE_WEBHOOK_MAX_AGE: "31d" }).warnings).toEqual([
    expect.stringMatching(/^SNAPTRADE_WEBHOOK_MAX_AGE/),
  ]);
  expect(envOf({ SNAPTRADE_WEBHOOK_MAX_AGE: "30d" }).warnings).toEqual([]);
});
