import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalText } from "@/lib/webhook/canonical-text";
import { type ParsedEvent, parseEvent, type WebhookEvent } from "@/lib/webhook/parse-event";
import { jsonObjectText } from "./arbitrary-json";
import { jsonValue } from "./json-value";
import { VECTOR_A, VECTOR_B } from "./signature-vectors";

const DAY = 86_400_000;
const NOW = Date.parse("2026-09-01T15:00:00Z");
const BASE = {
  webhookId: "w-1",
  eventType: "ACCOUNT_HOLDINGS_UPDATED",
  eventTimestamp: "2026-09-01T14:59:00.123456+00:00",
  accountId: "acct-1",
  brokerageAuthorizationId: "conn-1",
  userId: "user-1",
};

function parse(fields: Record<string, unknown>, now = NOW, maxAgeMs = DAY): ParsedEvent {
  return parseText(JSON.stringify({ ...BASE, ...fields }), now, maxAgeMs);
}

function parseText(text: string, now = NOW, maxAgeMs = DAY): ParsedEvent {
  return parseEvent(jsonValue(text), now, maxAgeMs);
}

function eventOf(parsed: ParsedEvent): WebhookEvent {
  if (parsed.kind !== "event" && parsed.kind !== "unroutable") throw new Error(`no event: ${JSON.stringify(parsed)}`);
  return parsed.event;
}

const sha256 = (text: string) => `sha256-${createHash("sha256").update(text).digest("hex")}`;

test("an event carries the ids, the time and the failed parts that its row and its routing need", () => {
  const { payload, ...event } = eventOf(parseText(VECTOR_A.wire));
  expect(event).toEqual({
    webhookId: "312a13f3-3929-46dd-a70f-ade6aaefc100",
    eventType: "ACCOUNT_HOLDINGS_UPDATED",
    accountId: "45a3f56a-eef6-4904-a68e-d3f90c3e07c5",
    connectionId: "6bb1a0b0-b8c8-4b59-8bf9-7841d7a89c63",
    userId: "user-42",
    eventTimestampMs: Date.parse("2026-09-01T14:38:13.111Z"),
    eventTimestamp: "2026-09-01T14:38:13.111991Z",
    failedParts: ["balances"],
  });
  expect(payload).toContain("Délai dépassé");
});

describe("the id", () => {
  test.each([
    ["webhookId wins over the misspelt one (B16)", { webookId: "w-2" }, "w-1"],
    ["the misspelt one counts alone", { webhookId: undefined, webookId: "w-2" }, "w-2"],
    ["an empty one is no id", { webhookId: "", webookId: "w-2" }, "w-2"],
    ["a number is no id", { webhookId: 7, webookId: "w-2" }, "w-2"],
    ["one with a blank is digested", { webhookId: "w 1" }, sha256("w 1")],
    ["one with a colon is digested (B109)", { webhookId: "a:b" }, sha256("a:b")],
    ["one with CR and LF is digested", { webhookId: "a\r\nDEL x" }, sha256("a\r\nDEL x")],
    ["one of 129 characters is digested", { webhookId: "a".repeat(129) }, sha256("a".repeat(129))],
    ["one of 128 characters stays", { webhookId: "a".repeat(128) }, "a".repeat(128)],
    ["one that begins with error_ is digested", { webhookId: "error_1" }, sha256("error_1")],
    ["a misspelt one of another form is digested", { webhookId: null, webookId: "*" }, sha256("*")],
  ])("%s", (_, fields, webhookId) => {
    expect(eventOf(parse(fields)).webhookId).toBe(webhookId);
  });

  test("without any id, a repetition of the same content has the same id, and other content another", () => {
    const first = '{"eventType":"USER_REGISTERED","userId":"u","eventTimestamp":"2026-09-01T14:59:00Z"}';
    const again = '{ "userId":"u", "eventTimestamp":"2026-09-01T14:59:00Z", "eventType":"USER_REGISTERED" }';
    const id = eventOf(parseText(first)).webhookId;
    expect(id).toBe(sha256(canonicalText(jsonValue(first))));
    expect(eventOf(parseText(again)).webhookId).toBe(id);
    expect(eventOf(parseText(first.replace('"u"', '"v"'))).webhookId).not.toBe(id);
  });

  test("of an event that is not taken it is told too, because the answer names it", () => {
    expect(parse({ eventType: "NEWS" })).toEqual({ kind: "ignored", webhookId: "w-1", eventType: "NEWS" });
    expect(parse({ eventTimestamp: "x" })).toMatchObject({ kind: "expired", webhookId: "w-1" });
  });
});

test.each([
  ["TEST_WEBHOOK"],
  ["account_holdings_updated"],
  ["constructor"],
  ["__proto__"],
  [""],
  [null],
  [7],
  [undefined],
])("an event of the unknown type %s is ignored, however old it is (B13)", (eventType) => {
  expect(parse({ eventType, eventTimestamp: "1999-01-01T00:00:00Z", accountId: null }).kind).toBe("ignored");
});

describe("the time", () => {
  test.each([
    "2026-09-01T14:38:13.111991+00:00",
    "2026-09-01T14:38:13.111991Z",
    "2026-09-01T09:38:13.111991-05:00",
    "2026-09-01T20:08:13.111991+05:30",
    "2026-09-01 14:38:13.111991+00:00",
    "2026-09-01T14:38:13.111991",
    "2026-09-01T14:38:13.111991999Z",
  ])("%s is the same instant, its microseconds kept (B11)", (eventTimestamp) => {
    expect(eventOf(parse({ eventTimestamp }))).toMatchObject({
      eventTimestamp: "2026-09-01T14:38:13.111991Z",
      eventTimestampMs: Date.parse("2026-09-01T14:38:13.111Z"),
    });
  });

  test.each([
    ["a fresh event", "2026-09-01T15:00:00Z", "event"],
    ["two minutes ahead", "2026-09-01T15:02:00Z", "event"],
    ["ten minutes ahead, as a late clock of ours sees it", "2026-09-01T15:10:00Z", "event"],
    ["just over ten minutes ahead", "2026-09-01T15:10:00.001Z", "expired"],
    ["a day ahead", "2026-09-02T15:00:00Z", "expired"],
    ["the provider's last retry, 3.5 h later (B09)", "2026-09-01T11:30:00Z", "event"],
    ["exactly the maximum age", "2026-08-31T15:00:00Z", "event"],
    ["just over the maximum age (B08)", "2026-08-31T14:59:59.999Z", "expired"],
  ])("%s: %s is %s", (_, eventTimestamp, kind) => {
    expect(parse({ eventTimestamp }).kind).toBe(kind);
  });

  test("the reason says which way it is off", () => {
    expect(parse({ eventTimestamp: "2026-08-01T00:00:00Z" })).toMatchObject({ reason: "too old" });
    expect(parse({ eventTimestamp: "2026-10-01T00:00:00Z" })).toMatchObject({ reason: "too far ahead" });
    expect(parse({ eventTimestamp: "yesterday" })).toMatchObject({ reason: "no readable timestamp" });
  });

  test.each([
    [undefined],
    [null],
    [1_788_274_800_000],
    ["1788274800"],
    [""],
    ["2026-09-01"],
    ["2026-02-30T10:00:00Z"],
    ["2026-09-01T25:00:00Z"],
    [{}],
  ])("%j is no readable time, and such an event is expired", (eventTimestamp) => {
    expect(parse({ eventTimestamp })).toMatchObject({ kind: "expired", reason: "no readable timestamp" });
  });

  test("an unroutable event that is stale is expired, so that it leaves no row", () => {
    expect(parse({ accountId: undefined, eventTimestamp: "2026-08-01T00:00:00Z" }).kind).toBe("expired");
  });
});

describe("routing", () => {
  test.each([[undefined], [null], [""], [12]])(
    "an account event with the account id %j has nowhere to go",
    (accountId) => {
      expect(parse({ accountId })).toMatchObject({
        kind: "unroutable",
        reason: "no account id",
        event: { accountId: null },
      });
    },
  );

  test.each(["*", "a:b", "[a-z]", "../x", "a\r\nDEL x", "a".repeat(10_240), "a-1 ", "äö"])(
    "the account id %j never becomes a key (B109)",
    (accountId) => {
      const parsed = parse({ accountId });
      expect(parsed).toMatchObject({ kind: "unroutable", reason: "account id of another form" });
      expect(eventOf(parsed).accountId).toBeNull();
      expect(JSON.parse(eventOf(parsed).payload)).toMatchObject({ accountId });
    },
  );

  test("the account id alone routes an account event", () => {
    expect(parse({ brokerageAuthorizationId: undefined, userId: "üser/é 🙂" })).toMatchObject({
      kind: "event",
      event: { accountId: "acct-1", connectionId: null, userId: null },
    });
  });

  test("the OAuth schema's name of the connection routes too (B16)", () => {
    const oauth = { schemaVersion: "oauth_v1", brokerageAuthorizationId: undefined, connectionId: "conn-2" };
    expect(parse({ ...oauth, eventType: "CONNECTION_BROKEN", accountId: undefined })).toMatchObject({
      kind: "event",
      event: { connectionId: "conn-2" },
    });
  });

  test.each([
    ["CONNECTION_BROKEN", { brokerageAuthorizationId: undefined }, "no connection id"],
    ["CONNECTION_FIXED", { brokerageAuthorizationId: "a:b" }, "connection id of another form"],
    ["ACCOUNT_REMOVED", { accountId: undefined }, "no account id"],
    ["USER_DELETED", { userId: undefined }, "no user id"],
    ["USER_REGISTERED", { userId: "a b" }, "user id of another form"],
  ])("%s with %j is unroutable: %s", (eventType, fields, reason) => {
    expect(parse({ eventType, ...fields })).toMatchObject({ kind: "unroutable", reason });
  });

  test.each([
    "CONNECTION_FAILED",
    "CONNECTION_ATTEMPTED",
    "CONNECTION_UPDATED",
    "CONNECTION_SOMETHING_NEW",
    "USER_SOMETHING_NEW",
  ])("%s changes nothing and needs no id", (eventType) => {
    const ids = { accountId: undefined, brokerageAuthorizationId: undefined, userId: undefined };
    expect(parse({ eventType, ...ids }).kind).toBe("event");
  });
});

describe("failed parts", () => {
  const failed = { success: false, error: "timeout" };
  const good = { success: true, error: null };

  test("are named in one order", () => {
    const details = { total_value: failed, orders: failed, balances: failed, positions: failed, other: failed };
    expect(eventOf(parse({ details })).failedParts).toEqual(["positions", "balances", "orders", "total_value"]);
  });

  test("are none where every part went well", () => {
    const details = { total_value: good, orders: good, balances: good, positions: good };
    expect(eventOf(parse({ details })).failedParts).toEqual([]);
  });

  test.each([
    [undefined],
    [null],
    ["x"],
    [[]],
    [{}],
    [{ orders: [{ success: false }] }],
    [{ positions: { success: "false" } }],
    [{ positions: null }],
  ])("are unknown, not none, where details are %j", (details) => {
    expect(eventOf(parse({ details })).failedParts).toBeNull();
  });
});

describe("the payload", () => {
  test("keeps every field and every number as it came, and loses only the secret (B113)", () => {
    const text = `${JSON.stringify(BASE).slice(0, -1)},"webhookSecret":"marker","details":{"lag":5.0,"big":12345678901234567890,"e":1E+2},"__proto__":1,"10":2}`;
    const { payload } = eventOf(parseText(text));
    expect(payload).toBe(text.replace('"webhookSecret":"marker",', ""));
  });

  test("of a stress body says the same as the body", () => {
    const parsed = parseText(VECTOR_B.wire, NOW + DAY / 4);
    expect(parsed).toMatchObject({ kind: "unroutable", reason: "no account id" });
    expect(JSON.parse(eventOf(parsed).payload)).toEqual(JSON.parse(VECTOR_B.wire));
    expect(eventOf(parsed).payload).toContain("123456789012345678901234567890");
  });
});

test.each(Object.keys(BASE))("an object that claims a length in the place of %s is no text", (field) => {
  for (const length of [{}, { toString: 1, valueOf: 1 }, 3]) {
    expect(parse({ ...BASE, [field]: { length } }).kind).toBe(parse({ ...BASE, [field]: null }).kind);
  }
});

test("no object makes it throw", () => {
  fc.assert(
    fc.property(
      jsonObjectText(),
      fc.dictionary(fc.constantFrom(...Object.keys(BASE), "details"), fc.jsonValue()),
      (text, fields) => {
        expect(parseText(text).kind).toBe("ignored");
        expect(parse(fields).kind).toMatch(/^(event|ignored|expired|unroutable)$/);
      },
    ),
  );
});
