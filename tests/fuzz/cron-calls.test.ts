import fc from "fast-check";
import { expect, test } from "vitest";
import { receiveHealth, receiveMetrics, receiveReconcile, receiveSweepStart } from "@/lib/http/receive-cron";
import { handled } from "@/lib/http/route";
import { APP_URL, CRON_SECRET, countingService } from "@/tests/fuzz/counting-service";
import { hostileHeaders } from "@/tests/fuzz/hostile";
import { fuzzRuns } from "@/tests/fuzz/runs";

const { service, calls, lines, reset } = countingService({});
const HANDLERS = { receiveSweepStart, receiveReconcile, receiveMetrics, receiveHealth };

const mutated = fc.oneof(
  fc.constantFrom(
    "Bearer",
    "Bearer ",
    "Bearer undefined",
    "bearer null",
    `Basic ${CRON_SECRET}`,
    `Bearer ${CRON_SECRET}, Bearer ${CRON_SECRET}`,
    `Bearer ${CRON_SECRET.toUpperCase()}`,
    `Bearer\t${CRON_SECRET}`,
    `Token ${CRON_SECRET}`,
    CRON_SECRET,
  ),
  fc.tuple(fc.nat({ max: CRON_SECRET.length }), fc.string({ minLength: 1, maxLength: 3 })).map(([at, put]) => {
    return `Bearer ${CRON_SECRET.slice(0, at)}${put.replace(/[^!-~]/g, "x")}${CRON_SECRET.slice(at)}`;
  }),
  fc.nat({ max: CRON_SECRET.length - 1 }).map((length) => `Bearer ${CRON_SECRET.slice(0, length)}`),
  fc.integer({ min: 100, max: 10_000 }).map((length) => `Bearer ${" ".repeat(length)}x`),
);

test("no header but the bearer opens a cron's route; strangers cost nothing and leave no line (I9)", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Object.values(HANDLERS)),
      fc.option(mutated),
      hostileHeaders,
      fc.webPath(),
      async (handler, authorization, others, path) => {
        reset();
        const headers = new Headers();
        for (const [name, value] of others) headers.append(name, value);
        headers.delete("authorization");
        if (authorization !== null) headers.set("authorization", authorization);
        const url = `${APP_URL}/${path.replace(/^\/+/, "")}?secret=${CRON_SECRET}&token=${CRON_SECRET}`;
        const response = await handled(service, handler, new Request(url, { headers }));
        expect([response.status, await response.text()]).toEqual(
          handler === receiveHealth ? [200, '{"status":"up"}'] : [401, '{"error":"unauthorized"}'],
        );
        expect([calls, lines]).toEqual([[], []]);
      },
    ),
    fuzzRuns(400, 0.3),
  );
}, 600_000);

test("the bearer opens them: what the test above refuses is refused for its credentials", async () => {
  for (const handler of Object.values(HANDLERS)) {
    reset();
    const headers = { authorization: `Bearer ${CRON_SECRET}` };
    await handled(service, handler, new Request(APP_URL, { headers }));
    expect(calls.length).toBeGreaterThan(0);
  }
});
