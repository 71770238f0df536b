import { expect, test } from "vitest";
import { setStage, until } from "@/tests/sandbox/qstash/harness";

test("a storm of 1000 messages goes through 100 at once, each exactly once", async () => {
  const stage = await setStage({ timeScale: 10 });
  const { client, destination, qstash } = stage;
  destination.respond = ({ response }) => setTimeout(() => response.end(), 5);
  const publish = (index: number) =>
    client.publishJSON({
      url: `${destination.url}/process`,
      body: { index },
      deduplicationId: `job-${index}-1`,
      flowControl: { key: "k", parallelism: 100, rate: 100, period: "1s" },
    });
  for (let from = 0; from < 1_000; from += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, offset) => publish(from + offset)));
  }
  await until(() => destination.received.length === 1_000 && qstash.state().inFlight === 0);
  expect(new Set(destination.received.map(({ body }) => body)).size).toBe(1_000);
  expect(destination.received).toHaveLength(1_000);
  expect(destination.mostAtOnce).toBeLessThanOrEqual(100);
});
