import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SETTING_NAMES } from "@/lib/env";
import { ensureBuilt } from "@/sandbox/stack/build-app";
import { createClosers } from "@/sandbox/stack/closers";

const STATIC = ".next/static";

/** What belongs to the server alone: settings' names and values, the names of what it calls. */
const OF_THE_SERVER = [
  ...SETTING_NAMES.filter((name) => name !== "APP_URL"),
  "snaptrade_accept_event",
  "snaptrade:webhook:",
  "api.snaptrade.com",
  "sandbox-consumer-key",
  "sb_secret_",
  "Upstash-Signature",
  "upstash-signature",
];

const closers = createClosers();
beforeAll(() => ensureBuilt(closers), 300_000);
afterAll(() => closers.close());

test("the build serves nothing of the server's to browsers: no setting, no secret, no key, no code of ours", () => {
  const files = readdirSync(STATIC, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.length).toBeGreaterThan(0);
  const values = SETTING_NAMES.flatMap((name) => process.env[name] ?? []).filter((value) => value.length > 7);
  const found = files.flatMap(({ parentPath, name }) => {
    const text = readFileSync(path.join(parentPath, name), "utf8");
    return [...OF_THE_SERVER, ...values]
      .filter((secret) => text.includes(secret))
      .map((secret) => `${secret} in ${name}`);
  });
  expect(found).toEqual([]);
});
