import { expect, test } from "vitest";
import { field } from "@/lib/metrics/metric-names";
import { renderMetrics } from "@/lib/metrics/render-metrics";

const NO_GAUGES = { jobs: null, oldestQueuedSeconds: null, budgetUsedRatio: null };

const samples = (text: string) => text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

test("fields are named once, for the scripts that count and the page that shows", () => {
  expect(field("webhook_events", "accepted")).toBe("webhook_events:accepted");
  expect(field("provider_responses", 429)).toBe("provider_responses:429");
  expect(field("jobs_coalesced")).toBe("jobs_coalesced");
});

test("every metric stands under its name and label", async () => {
  const text = await renderMetrics(
    {
      [field("webhook_events", "accepted")]: "12",
      [field("webhook_events", "duplicate")]: "3",
      [field("jobs_coalesced")]: "4",
      [field("active_lock_skips")]: "5",
      [field("qstash_publish_failures")]: "6",
      [field("qstash_retries")]: "7",
      [field("provider_responses", 200)]: "80",
      [field("provider_responses", 429)]: "9",
      [field("jobs_deferred", "cooldown")]: "10",
      [field("runs", "done")]: "11",
    },
    { jobs: { queued: 2, running: 0, dead: 1 }, oldestQueuedSeconds: 1.5, budgetUsedRatio: 0.25 },
  );
  expect(samples(text)).toEqual([
    'snaptrade_webhook_events_total{outcome="accepted"} 12',
    'snaptrade_webhook_events_total{outcome="duplicate"} 3',
    'snaptrade_webhook_events_total{outcome="coalesced"} 0',
    'snaptrade_webhook_events_total{outcome="ignored"} 0',
    'snaptrade_webhook_events_total{outcome="unroutable"} 0',
    'snaptrade_webhook_events_total{outcome="expired"} 0',
    'snaptrade_webhook_events_total{outcome="waiting"} 0',
    "snaptrade_jobs_coalesced_total 4",
    "snaptrade_active_lock_skips_total 5",
    "snaptrade_qstash_publish_failures_total 6",
    "snaptrade_qstash_retries_total 7",
    'snaptrade_provider_responses_total{status="200"} 80',
    'snaptrade_provider_responses_total{status="429"} 9',
    'snaptrade_jobs_deferred_total{reason="cooldown"} 10',
    'snaptrade_runs_total{outcome="done"} 11',
    "snaptrade_duplicate_webhooks_total 3",
    "snaptrade_provider_429_total 9",
    'snaptrade_jobs{status="queued"} 2',
    'snaptrade_jobs{status="running"} 0',
    'snaptrade_jobs{status="dead"} 1',
    "snaptrade_oldest_queued_seconds 1.5",
    "snaptrade_budget_used_ratio 0.25",
  ]);
});

test("what could not be read is left out, what never happened is zero", async () => {
  const text = await renderMetrics({}, NO_GAUGES);
  expect(text).not.toContain("snaptrade_jobs{");
  expect(text).not.toContain("snaptrade_oldest_queued_seconds");
  expect(samples(text)).toContain("snaptrade_provider_429_total 0");
  expect(await renderMetrics(null, NO_GAUGES)).not.toContain("_total");
});

test("neither a foreign field nor a broken value makes a metric wrong", async () => {
  const text = await renderMetrics(
    { other: "1", "webhook_events:accepted": "many", qstash_retries: "-1", 'runs:a"b\n': "2", jobs_coalesced: "1e999" },
    NO_GAUGES,
  );
  expect(samples(text)).toEqual(
    expect.arrayContaining([
      'snaptrade_webhook_events_total{outcome="accepted"} 0',
      "snaptrade_qstash_retries_total 0",
      'snaptrade_runs_total{outcome="a\\"b\\n"} 2',
      "snaptrade_jobs_coalesced_total 0",
    ]),
  );
  expect(text).not.toContain("other");
});

test("two calls share nothing", async () => {
  const first = await renderMetrics({ qstash_retries: "1" }, NO_GAUGES);
  expect(await renderMetrics({ qstash_retries: "1" }, NO_GAUGES)).toBe(first);
});
