import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import config from "@/next.config";

test("every path carries the headers that keep a browser from sniffing, framing, running or leaking an answer", async () => {
  const rules = (await config.headers?.()) ?? [];
  const [rule] = rules.filter(({ source, has, missing }) => source === "/:path*" && !has && !missing);
  const headers = Object.fromEntries(rule?.headers.map(({ key, value }) => [key.toLowerCase(), value]) ?? []);
  expect(headers).toEqual({
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "strict-transport-security": expect.stringMatching(/^max-age=(6307\d{4}|[1-9]\d{8,}); includeSubDomains/),
  });
});

test("no later rule takes them back, nothing rewrites or redirects, and the framework does not name itself", async () => {
  const rules = (await config.headers?.()) ?? [];
  expect(rules).toHaveLength(1);
  expect(config).not.toHaveProperty("rewrites");
  expect(config).not.toHaveProperty("redirects");
  expect(config.poweredByHeader).toBe(false);
});

test("there are routes only: no page of ours would need a script, a style or a frame", () => {
  const files = readdirSync("app", { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.length).toBeGreaterThan(0);
  expect(files.map(({ name }) => name).filter((name) => name !== "route.ts")).toEqual([]);
});
