import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { decryptSecret, encryptSecret } from "@/lib/secrets";

const oldKey = randomBytes(32);
const newKey = randomBytes(32);

test("a secret comes back as it was", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (plain) => {
      expect(decryptSecret(encryptSecret(plain, [newKey], "user-1"), [newKey], "user-1")).toBe(plain);
    }),
  );
});

test("rows of before a rotation stay readable, and new ones are written with the first key", () => {
  const before = encryptSecret("plain-secret", [oldKey], "user-1");
  expect(decryptSecret(before, [newKey, oldKey], "user-1")).toBe("plain-secret");
  const after = encryptSecret("plain-secret", [newKey, oldKey], "user-1");
  expect(decryptSecret(after, [newKey], "user-1")).toBe("plain-secret");
  expect(() => decryptSecret(after, [oldKey], "user-1")).toThrow(/none of the 1 keys of SNAPTRADE_SECRETS_KEY/);
});

test("a row that was copied to another user does not open there", () => {
  const sealed = encryptSecret("plain-secret", [newKey], "user-1");
  expect(() => decryptSecret(sealed, [newKey], "user-2")).toThrow(/belongs to another user/);
});

test("the same secret is never stored the same way twice, and never readable", () => {
  const first = encryptSecret("plain-secret", [newKey], "user-1");
  expect(first).toMatch(/^v1\.[A-Za-z0-9_-]+$/);
  expect(encryptSecret("plain-secret", [newKey], "user-1")).not.toBe(first);
  expect(Buffer.from(first.slice(3), "base64url").toString("latin1")).not.toContain("plain-secret");
});

test("a changed byte anywhere is noticed", () => {
  const sealed = Buffer.from(encryptSecret("plain-secret", [newKey], "user-1").slice(3), "base64url");
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    expect(() => decryptSecret(`v1.${changed.toString("base64url")}`, [newKey], "user-1")).toThrow(/opens with none/);
  }
});

test.each(["", "plain-secret", "v1.", "v1.plain-secret", "v2.AAAA", `v1.${"A".repeat(60)}.x`])(
  "what is not of the form is refused without being repeated: %j",
  (text) => {
    expect(() => decryptSecret(text, [newKey], "user-1")).toThrow(/not in the form/);
    expect(() => decryptSecret(text, [newKey], "user-1")).not.toThrow(/plain-secret/);
  },
);

test("without a key nothing is encrypted", () => {
  expect(() => encryptSecret("plain-secret", [], "user-1")).toThrow(/SNAPTRADE_SECRETS_KEY/);
});
