import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalText } from "@/lib/webhook/canonical-text";
import { parseWebhookJson } from "@/lib/webhook/json-text";
import { verifyWebhook } from "@/lib/webhook/verify-signature";
import { jsonValue } from "./json-value";
import * as vectors from "./signature-vectors";

function verify(wire: string, signature: string | null, consumerKeys: string[], webhookSecret?: string): boolean {
  const bytes = new TextEncoder().encode(wire);
  const read = parseWebhookJson(bytes);
  return read.kind === "ok" && verifyWebhook({ signature, bytes, value: read.value, consumerKeys, webhookSecret });
}

const file: { consumerKey: string; vectors: { name: string; body: string; signature: string; accept: boolean }[] } =
  JSON.parse(readFileSync("tests/fixtures/signatures.json", "utf8"));

test.each(file.vectors)("vector of the fixtures: $name is accepted: $accept", ({ body, signature, accept }) => {
  expect(verify(body, signature, [file.consumerKey])).toBe(accept);
});

test.each([
  ["A: text outside ASCII", vectors.VECTOR_A],
  ["B: numbers, keys and escapes", vectors.VECTOR_B],
  ["C: a whole float", vectors.VECTOR_C],
])("vector %s verifies, and the near misses of it do not", (_, { wire, signature, wrong }) => {
  expect(verify(wire, signature, [vectors.VECTOR_KEY])).toBe(true);
  for (const nearMiss of wrong) expect(verify(wire, nearMiss, [vectors.VECTOR_KEY])).toBe(false);
});

test.each(vectors.SHORT_VECTORS)(
  "what a plain sort and stringify gets wrong verifies: $name (B02)",
  ({ wire, signature }) => {
    expect(verify(wire, signature, [vectors.SHORT_VECTOR_KEY])).toBe(true);
  },
);

test("one signature fits a body in any order and spacing, and no other value (B01)", () => {
  const { wire, signature } = vectors.SHORT_VECTORS[0] ?? { wire: "", signature: "" };
  const entries = [...jsonValue(wire)].reverse();
  const reversed = JSON.stringify(Object.fromEntries(entries));
  for (const body of [wire, reversed, JSON.stringify(JSON.parse(wire), null, 2)]) {
    expect(verify(body, signature, [vectors.SHORT_VECTOR_KEY])).toBe(true);
  }
  expect(verify(wire.replace("a-1", "a-2"), signature, [vectors.SHORT_VECTOR_KEY])).toBe(false);
});

test("every body of the recorded storm verifies", () => {
  const lines = gunzipSync(readFileSync("tests/fixtures/storm.jsonl.gz")).toString("utf8").trimEnd().split("\n");
  const refused = lines.filter((line) => {
    const { body, signature }: { body: string; signature: string } = JSON.parse(line);
    return !verify(body, signature, ["sandbox-consumer-key"]);
  });
  expect(lines.length).toBeGreaterThan(5000);
  expect(refused).toEqual([]);
});

describe("with a body that is genuine", () => {
  const wire = '{"webhookId": "w-9", "webhookSecret": "body-secret"}';
  const canonical = canonicalText(jsonValue(wire));
  const signature = vectors.hmacOf(canonical, "first-key");
  const nonCanonicalTail = signature.replace(
    /(.)=$/,
    (_, last: string) => `${String.fromCharCode(last.charCodeAt(0) + 1)}=`,
  );

  test.each([
    ["empty", ""],
    ["one character", "a"],
    ["43 characters", signature.slice(0, 43)],
    ["45 characters", `${signature}=`],
    ["10 kB", "A".repeat(10_000)],
    ["base64 of 31 bytes", Buffer.alloc(31).toString("base64")],
    ["base64 of 33 bytes", Buffer.alloc(33).toString("base64")],
    ["two values joined", `${signature}, ${signature}`],
    ["hex", Buffer.from(signature, "base64").toString("hex")],
    ["a prefix", `sha256=${signature}`],
    ["the url alphabet", signature.replace(/[+/]/g, "_").replace("=", "-")],
    ["a tail that decodes to the same bytes", nonCanonicalTail],
    ["44 characters outside Latin-1", "Ł".repeat(43).concat("=")],
  ])("a header that is %s is refused and throws nothing (B05)", (_, header) => {
    expect(verify(wire, header, ["first-key"], "body-secret")).toBe(false);
  });

  test("no header whatever makes it throw or pass", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (header) => {
        expect(verify(wire, header, ["first-key"])).toBe(false);
      }),
    );
  });

  test("canonical text and raw bytes both count, with each key of a rotation", () => {
    const keys = ["new-key", "first-key", "old-key"];
    expect(verify(wire, signature, keys)).toBe(true);
    expect(verify(wire, vectors.hmacOf(wire, "old-key"), keys)).toBe(true);
    expect(verify(wire, vectors.hmacOf(wire, "other-key"), keys)).toBe(false);
    expect(verify(wire, signature, [])).toBe(false);
  });

  test("the secret of the body counts only without a header and only where it is configured", () => {
    expect(verify(wire, null, ["first-key"], "body-secret")).toBe(true);
    expect(verify(wire, null, ["first-key"], "body-secre")).toBe(false);
    expect(verify(wire, null, ["first-key"])).toBe(false);
    expect(verify(wire, null, ["first-key"], "")).toBe(false);
    expect(verify(wire, vectors.hmacOf(wire, "other-key"), ["first-key"], "body-secret")).toBe(false);
  });

  test.each(['{"webhookSecret":""}', '{"webhookSecret":null}', '{"webhookSecret":["body-secret"]}', "{}"])(
    "%s has no secret to compare",
    (body) => {
      expect(verify(body, null, ["first-key"], "body-secret")).toBe(false);
      expect(verify(body, null, ["first-key"], "")).toBe(false);
    },
  );
});
