import { describe, expect, test } from "vitest";
import { classifyAnswer, readLimits } from "@/lib/provider/classify-answer";
import { COOLDOWN, NOW } from "@/tests/unit/provider/fake-server";

type Headers = Record<string, string>;

function classify(status: number, body = "", headers: Headers = {}) {
  return classifyAnswer({ status, header: (name) => headers[name], body }, COOLDOWN, () => NOW);
}

const HTML = "\n<!DOCTYPE html><html><body>Bad gateway</body></html>";

describe("each status means one thing", () => {
  test.each([
    [400, '{"detail":"x","code":"1076"}', "unauthorized"],
    [401, '{"detail":"Unable to verify signature sent","status_code":401,"code":"1076"}', "unauthorized"],
    [403, '{"detail":"Feature is not enabled","default_code":1141}', "unauthorized"],
    [403, HTML, "unauthorized"],
    [402, '{"detail":"disabled","code":3003}', "refused"],
    [410, '{"detail":"This endpoint is no longer available for your account."}', "refused"],
    [404, '{"detail":"does not exist","status_code":404,"code":"1011"}', "gone"],
    [404, "", "failed"],
    [404, "default backend - 404", "failed"],
    [404, '{"detail":"cut of', "failed"],
    [404, "[]", "failed"],
    [404, HTML, "failed"],
    [501, '{"error":"not supported"}', "unsupported"],
    [503, '{"detail":"busy","status_code":503,"code":"3002"}', "busy"],
    [503, '{"detail":"busy","code":3002}', "busy"],
    [503, '{"default_detail":"busy","default_code":3002}', "busy"],
    [503, '{"detail":"down","code":"9999"}', "failed"],
    [503, HTML, "failed"],
    [503, "", "failed"],
    [425, '{"detail":"populated","code":3012}', "failed"],
    [500, '{"default_detail":"Encountered an unexpected error","default_code":1000}', "failed"],
    [502, HTML, "failed"],
    [301, "", "failed"],
    [302, "", "failed"],
    [204, "", "failed"],
    [206, "[]", "failed"],
    [409, "", "failed"],
    [418, "[]", "failed"],
    [429, "", "throttled"],
  ])("%d %j is %s", (status, body, kind) => expect(classify(status, body)?.kind).toBe(kind));

  test("only 200 is read", () => expect(classify(200, "anything")).toBeNull());

  test("a reason says what SnapTrade said, and its status", () => {
    expect(classify(410, '{"detail":"This endpoint is no longer available for your account."}')).toEqual({
      kind: "refused",
      status: 410,
      reason: "HTTP 410: This endpoint is no longer available for your account.",
    });
    expect(classify(502, HTML)).toEqual({
      kind: "failed",
      status: 502,
      reason: "HTTP 502: the body is a page, not JSON",
    });
  });
});

describe("I6: a 429 stops exactly those whom its headers name", () => {
  const THROTTLED =
    '{"detail":"Request was throttled. Expected available in 7 seconds.","status_code":429,"code":"0000"}';
  const REFRESH =
    '{"detail":"Connection refreshed too recently. Please try again later.","status_code":429,"code":"throttled"}';
  const spent = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "33" };
  const left = { "x-ratelimit-remaining": "120", "x-ratelimit-reset": "33" };
  const accountSpent = { "x-ratelimit-account-remaining": "0", "x-ratelimit-account-reset": "5" };

  test.each<[string, string, Headers, string, number]>([
    ["the client's count is at 0", THROTTLED, spent, "client", 33_000],
    ["no header came", THROTTLED, {}, "client", 7_000],
    ["no header is at 0: the hidden limit", THROTTLED, { ...left, "retry-after": "11" }, "client", 11_000],
    ["only the account's count is at 0", THROTTLED, { ...left, ...accountSpent }, "account", 5_000],
    ["both are at 0", THROTTLED, { ...spent, ...accountSpent }, "client", 33_000],
    ["the account has calls left", THROTTLED, { ...left, "x-ratelimit-account-remaining": "3" }, "client", 33_000],
    ["a refresh came too soon", REFRESH, left, "connection", 60_000],
    ["a refresh came too soon, and the client is spent", REFRESH, spent, "client", 33_000],
    ["the count cannot be read", THROTTLED, { "x-ratelimit-remaining": "none" }, "client", 7_000],
    ["the body is a page", HTML, {}, "client", 60_000],
    ["the body is cut", '{"detail":"Expected available in 21 seconds', {}, "client", 21_000],
    ["Retry-After wins over the reset", THROTTLED, { ...spent, "retry-after": "2" }, "client", 2_000],
  ])("%s", (_, body, headers, scope, retryAfterMs) => {
    expect(classify(429, body, headers)).toEqual({ kind: "throttled", scope, retryAfterMs });
  });

  test("B64: an epoch in the reset header is reported, not slept for", () => {
    const failure = classify(429, "", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790000000" });
    expect(failure).toMatchObject({ kind: "throttled", scope: "client", retryAfterMs: 60_000 });
    expect(failure).toHaveProperty("warning", expect.stringContaining("1790000000"));
  });
});

describe("limits are reported as the headers gave them", () => {
  const limits = (headers: Headers) => readLimits((name) => headers[name]);

  test("all three", () => {
    const headers = { "x-ratelimit-limit": "250", "x-ratelimit-remaining": "249", "x-ratelimit-reset": "60" };
    expect(limits(headers)).toEqual({ limit: 250, remaining: 249, resetSeconds: 60 });
  });
  test("none", () => expect(limits({})).toEqual({}));
  test("a remaining count of 0 is a count", () =>
    expect(limits({ "x-ratelimit-remaining": "0" })).toEqual({ remaining: 0 }));
  test("values that cannot be counts are absent; a limit of 0 would stop everything for ever", () => {
    const headers = { "x-ratelimit-limit": "0", "x-ratelimit-remaining": "-1", "x-ratelimit-reset": "1790000000" };
    expect(limits(headers)).toEqual({});
    expect(limits({ "x-ratelimit-limit": "NaN", "x-ratelimit-remaining": "1.5", "x-ratelimit-reset": "" })).toEqual({});
  });
});
