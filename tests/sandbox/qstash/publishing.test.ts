import { Client, QstashError } from "@upstash/qstash";
import { describe, expect, test } from "vitest";
import { quietClient, setStage, settled } from "@/tests/sandbox/qstash/harness";

const TEN_MINUTES_MS = 600_000;

test("the published client publishes, and the message arrives with its body, method and headers", async () => {
  const stage = await setStage();
  const { messageId } = await stage.client.publishJSON({
    url: `${stage.destination.url}/jobs`,
    body: { a: "ü" },
    method: "PUT",
    headers: { "X-Request": "r-1" },
  });
  await settled(stage, 1);
  const [call] = stage.destination.received;
  expect(call).toMatchObject({
    method: "PUT",
    path: "/jobs",
    body: '{"a":"ü"}',
    headers: { "content-type": "application/json", "x-request": "r-1", "upstash-message-id": messageId },
  });
});

test("the destination is taken raw: query string, double slashes and percent signs reach it untouched", async () => {
  const stage = await setStage();
  await stage.client.publish({ url: `${stage.destination.url}/a//b?next=http://x.test/y&z=%20a&z=%2F`, body: "b" });
  await settled(stage, 1);
  expect(stage.destination.received[0]?.path).toBe("/a//b?next=http://x.test/y&z=%20a&z=%2F");
});

test("configuration in the query string of a webhook URL is used and not passed on, nor is the token", async () => {
  const stage = await setStage();
  const target = `${stage.destination.url}/hook?a=1&upstash-delay=30s&upstash-retries=0&qstash_token=token-of-the-test&b=2`;
  const response = await fetch(`${stage.qstash.url}/v2/publish/${target}`, { method: "POST", body: "x" });
  expect(response.status).toBe(200);
  expect(stage.qstash.state()).toMatchObject({ pending: 1, inFlight: 0 });
  stage.qstash.clock.advance(30_000);
  await settled(stage, 1);
  expect(stage.destination.received[0]?.path).toBe("/hook?a=1&b=2");
});

test("binary bodies arrive byte for byte", async () => {
  const stage = await setStage();
  const bytes = Buffer.from([0, 255, 254, 10, 13, 128]);
  await fetch(`${stage.qstash.url}/v2/publish/${stage.destination.url}/bin`, {
    method: "POST",
    headers: { Authorization: "Bearer token-of-the-test", "Content-Type": "application/octet-stream" },
    body: bytes,
  });
  await settled(stage, 1);
  expect(stage.destination.received[0]?.bytes.equals(bytes)).toBe(true);
});

describe("delay", () => {
  test("a delayed message comes when its delay is over, not before", async () => {
    const stage = await setStage();
    await stage.client.publish({ url: stage.destination.url, delay: "90m" });
    stage.qstash.clock.advance(5_399_999);
    expect(stage.qstash.state()).toMatchObject({ pending: 1, deliveries: [] });
    stage.qstash.clock.advance(1);
    await settled(stage, 1);
    expect(stage.qstash.state().pending).toBe(0);
  });

  test("not-before is a unix time and overrides a delay; in the past it means now", async () => {
    const stage = await setStage();
    const inAnHour = Math.floor(Date.now() / 1_000) + 3_600;
    await stage.client.publish({ url: stage.destination.url, delay: 1, notBefore: inAnHour });
    stage.qstash.clock.advance(3_590_000);
    expect(stage.qstash.state().pending).toBe(1);
    stage.qstash.clock.advance(11_000);
    await settled(stage, 1);
    await stage.client.publish({ url: stage.destination.url, notBefore: 1 });
    await settled(stage, 2);
  });

  test("with a time scale the same delay passes in a fraction of the real time", async () => {
    const stage = await setStage({ timeScale: 6_000 });
    const began = Date.now();
    await stage.client.publish({ url: stage.destination.url, delay: "10m" });
    await settled(stage, 1);
    expect(Date.now() - began).toBeGreaterThanOrEqual(99);
  });
});

describe("deduplication", () => {
  test("a repeated id within ten minutes is answered 202 with the first message's id and not delivered", async () => {
    const stage = await setStage();
    const publish = () => stage.client.publish({ url: stage.destination.url, deduplicationId: "job-1" });
    const first = await publish();
    stage.qstash.clock.advance(TEN_MINUTES_MS - 1);
    expect(await publish()).toEqual({ messageId: first.messageId, deduplicated: true });
    const { status } = await stage.api("POST", `/v2/publish/${stage.destination.url}`, {
      "Upstash-Deduplication-Id": "job-1",
    });
    expect(status).toBe(202);
    await settled(stage, 1);
    expect(stage.qstash.state()).toMatchObject({ published: 1, deduplicated: 2 });
  });

  test("after the window the id is accepted again", async () => {
    const stage = await setStage();
    const first = await stage.client.publish({ url: stage.destination.url, deduplicationId: "job-1" });
    stage.qstash.clock.advance(TEN_MINUTES_MS);
    const second = await stage.client.publish({ url: stage.destination.url, deduplicationId: "job-1" });
    expect(second.messageId).not.toBe(first.messageId);
    await settled(stage, 2);
  });

  test("an id whose message was cancelled still swallows", async () => {
    const stage = await setStage();
    const publish = () => stage.client.publish({ url: stage.destination.url, deduplicationId: "job-1", delay: 60 });
    const { messageId } = await publish();
    await stage.client.messages.cancel(messageId);
    expect(await publish()).toMatchObject({ messageId, deduplicated: true });
  });

  test("content-based deduplication looks at destination, body and forwarded headers", async () => {
    const stage = await setStage();
    const publish = (body: string, tenant: string, path = "") =>
      stage.client.publish({
        url: stage.destination.url + path,
        body,
        headers: { tenant },
        contentBasedDeduplication: true,
      });
    await publish("a", "1");
    expect(await publish("a", "1")).toHaveProperty("deduplicated", true);
    for (const other of [publish("b", "1"), publish("a", "2"), publish("a", "1", "/other")]) {
      expect(await other).not.toHaveProperty("deduplicated");
    }
    await settled(stage, 4);
  });
});

describe("refusals", () => {
  test.each([
    [{ "Upstash-Deduplication-Id": "a:b" }, "DeduplicationId cannot contain ':'"],
    [
      { "Upstash-Flow-Control-Key": "k", "Upstash-Flow-Control-Value": "rate=ten" },
      "Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values",
    ],
    [
      { "Upstash-Flow-Control-Key": "k" },
      "Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values",
    ],
    [{ "Upstash-Delay": "-5s" }, "Upstash-Delay must be a duration such as 30s or 1d10h, not -5s"],
    [{ "Upstash-Retries": "many" }, "Upstash-Retries must be a whole number of 0 or more, not many"],
    [
      { "Upstash-Retry-Delay": "process.exit()" },
      'Upstash-Retry-Delay is not a valid expression: unexpected "process"',
    ],
    [
      { "Upstash-Failure-Callback": "example.com" },
      "invalid failure callback url: endpoint has invalid scheme, add http:// or https://",
    ],
  ])("%j is answered 400 with an error text", async (headers, error) => {
    const stage = await setStage();
    const answer = await stage.api("POST", `/v2/publish/${stage.destination.url}`, headers);
    expect(answer).toEqual({ status: 400, json: { error } });
    expect(stage.qstash.state()).toMatchObject({ published: 0, pending: 0 });
  });

  test("a destination without scheme is refused", async () => {
    const { api } = await setStage();
    expect(await api("POST", "/v2/publish/example.com/a")).toEqual({
      status: 400,
      json: { error: "invalid destination url: endpoint has invalid scheme, add http:// or https://" },
    });
  });

  test("a wrong or missing token is answered 401, and nothing is stored", async () => {
    quietClient();
    const { qstash, destination } = await setStage();
    const stranger = new Client({ baseUrl: qstash.url, token: "wrong", devMode: false });
    const error = await stranger.publish({ url: destination.url }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(QstashError);
    expect(error).toMatchObject({ status: 401 });
    const anonymous = await fetch(`${qstash.url}/v2/publish/${destination.url}`, { method: "POST" });
    expect([anonymous.status, await anonymous.json()]).toEqual([401, { error: "unauthorized" }]);
    expect(qstash.state()).toMatchObject({ requests: 2, published: 0 });
  });

  test("a body above the plan's message size is answered 412", async () => {
    const stage = await setStage();
    const body = "x".repeat(10 * 1024 * 1024 + 1);
    expect((await stage.api("POST", `/v2/publish/${stage.destination.url}`, {}, body)).status).toBe(412);
  });
});

describe("batch", () => {
  test("the client's batch comes back in order, and each message has its own headers", async () => {
    const stage = await setStage();
    const results = await stage.client.batchJSON([
      { url: `${stage.destination.url}/one`, body: { n: 1 }, headers: { tag: "first" } },
      { url: `${stage.destination.url}/two`, body: { n: 2 }, deduplicationId: "two" },
      { url: `${stage.destination.url}/three`, body: { n: 3 }, deduplicationId: "two" },
    ]);
    expect(results).toHaveLength(3);
    expect(results[2]).toMatchObject({ deduplicated: true });
    await settled(stage, 2);
    const byPath = new Map(stage.destination.received.map((call) => [call.path, call]));
    expect(byPath.get("/one")).toMatchObject({ body: '{"n":1}', headers: { tag: "first" } });
    expect(byPath.get("/two")?.headers["upstash-message-id"]).toBe(results[1] && Reflect.get(results[1], "messageId"));
  });

  test("a bad item gets an error entry in a 200, the others are sent", async () => {
    const stage = await setStage();
    const good = { destination: stage.destination.url };
    const { status, json } = await stage.api(
      "POST",
      "/v2/batch",
      {},
      JSON.stringify([
        good,
        { destination: "nowhere" },
        { destination: stage.destination.url, headers: { "upstash-deduplication-id": "a:b" } },
        { body: "no destination" },
        { destination: stage.destination.url, headers: { "Upstash-Forward-X": "line\nbreak" } },
        good,
      ]),
    );
    expect(status).toBe(200);
    const sent = { messageId: expect.stringMatching(/^msg_/) };
    const failed = { error: expect.any(String) };
    expect(json).toEqual([sent, failed, failed, failed, failed, sent]);
    await settled(stage, 2);
  });

  test("a body that is no array is refused as a whole", async () => {
    const { api } = await setStage();
    expect((await api("POST", "/v2/batch", {}, "{}")).status).toBe(400);
    expect((await api("POST", "/v2/batch", {}, "[")).status).toBe(400);
  });
});
