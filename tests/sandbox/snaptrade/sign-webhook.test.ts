import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { makeWebhook, signWebhook } from "@/sandbox/snaptrade/sign-webhook";
import { num } from "@/sandbox/snaptrade/wire";

const fixture = z
  .object({
    consumerKey: z.string(),
    vectors: z.array(z.object({ name: z.string(), body: z.string(), signature: z.string(), accept: z.boolean() })),
  })
  .parse(JSON.parse(readFileSync(new URL("../../fixtures/signatures.json", import.meta.url), "utf8")));

describe("a webhook signature", () => {
  const genuine = fixture.vectors.filter(
    ({ accept, name }) => accept && !name.startsWith("signature over the raw bytes"),
  );
  const forged = fixture.vectors.filter(({ accept }) => !accept);

  test.each(genuine)("is that of the recorded vector: $name", ({ body, signature }) => {
    expect(signWebhook(body, fixture.consumerKey)).toBe(signature);
  });

  test.each(forged)("is not that of the forged vector: $name", ({ body, signature }) => {
    expect(signWebhook(body, fixture.consumerKey)).not.toBe(signature);
  });

  test("orders keys by code point, escapes all but ASCII, and writes floats as Python does", () => {
    const body =
      '{"webookId": "763bc1cd-8aca-4896-8faa-e84b82f8f7b2", "webhookId": "763bc1cd-8aca-4896-8faa-e84b82f8f7b2", "eventType": "TRADE_DETECTION", "eventTimestamp": "2026-09-01T18:52:08.123974+00:00", "userId": "\\u00fcser/\\u00e9 \\ud83d\\ude42", "clientId": "PARTNERAPP", "accountId": null, "details": {"z": [1, 1.0, -0.0, 0.1, 1e-05, 0.0001, 1e+16, 1e+21, 123456789012345678901234567890, 12345678901234567, 1.5e+300, 100.0], "10": "ten", "9": "nine", "a": {"b": {"d": 4, "c": 3}}, "text": "tab\\tnl\\nquote\\"back\\\\slash/ del\\u007f nul\\u0000 \\u2028 \\u65e5\\u672c\\u8a9e \\ud83d\\ude80", "empty": {}, "list": [], "flag": false, "\\ufb00": 1, "\\ud83d\\ude00": 2, "Z": 3, "\\u00e9": 4}}';
    expect(signWebhook(body, "test-consumer-key-0123456789")).toBe("Le84SRrUWnuRYLbeKTUZpf+dao66dB6G8tnQ79zoCzM=");
  });

  test("takes the last of two equal keys", () => {
    expect(signWebhook('{"a":1,"a":2}', "k")).toBe(signWebhook('{"a":2}', "k"));
  });

  test("of a made webhook is that of its text, and a LosslessNumber goes out as it is", () => {
    const { body, signature } = makeWebhook({ webhookId: "w", lag: num("5.0"), tiny: num("1e-7"), n: 3 }, "k");
    expect(body).toBe('{"webhookId":"w","lag":5.0,"tiny":1e-7,"n":3}');
    expect(signature).toBe(signWebhook(body, "k"));
    expect(signature).not.toBe(signWebhook(body.replace("5.0", "5"), "k"));
  });
});
