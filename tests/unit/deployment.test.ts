import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import config from "@/next.config";

/** What stands around the routes when they are deployed: it must open, close or move none of them. */
const crons = z
  .object({ crons: z.array(z.object({ path: z.string(), schedule: z.string() })) })
  .parse(JSON.parse(readFileSync("vercel.json", "utf8"))).crons;
const manifest = z
  .object({ dependencies: z.record(z.string(), z.string()), devDependencies: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync("package.json", "utf8")));

function sources(...folders: string[]): { file: string; text: string }[] {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => /\.[jt]sx?$/.test(file))
      .map((file) => ({ file: `${folder}/${file}`, text: readFileSync(`${folder}/${file}`, "utf8") })),
  );
}

// B84
test("each cron calls a GET route of ours by its very path, and nothing redirects it", () => {
  expect(crons).toHaveLength(2);
  for (const { path } of crons) {
    expect(path).toMatch(/^\/api\/cron\/[a-z-]+$/);
    expect(readFileSync(`app${path}/route.ts`, "utf8")).toMatch(/export const GET = /);
  }
  expect(Object.keys(config)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/redirects|rewrites|trailingSlash|basePath|i18n/)]),
  );
});

// B112
test("no middleware stands before the routes, so there is none that a header could skip", () => {
  const names = ["middleware", "proxy"].flatMap((name) => ["ts", "js", "mts", "mjs"].map((end) => `${name}.${end}`));
  const found = ["", "src/", "app/"].flatMap((folder) => names.map((name) => folder + name)).filter(existsSync);
  expect(found).toEqual([]);
  const [major = 0] = (manifest.dependencies.next ?? "").split(".").map(Number);
  expect(major).toBeGreaterThanOrEqual(16);
});

// B79
test("no code of ours runs in a browser, and no setting has a name that a bundle would carry", () => {
  const all = sources("app", "lib");
  expect(all.length).toBeGreaterThan(50);
  for (const { file, text } of [...all, { file: ".env.example", text: readFileSync(".env.example", "utf8") }]) {
    expect(text, file).not.toMatch(/["']use client["']|NEXT_PUBLIC_/);
  }
  expect(sources("app").filter(({ file }) => !file.endsWith("/route.ts"))).toEqual([]);
});

// B87
test("nothing that is fetched may be cached by the framework: no code of ours calls its fetch", () => {
  for (const { file, text } of sources("app", "lib")) {
    expect(text, file).not.toMatch(/(?<![\w.])fetch\(|unstable_cache|["']use cache["']|revalidate/);
  }
});

// B89
test("the rule that a promise is awaited is an error, not a warning", () => {
  const biome = z
    .object({ linter: z.object({ rules: z.object({ nursery: z.object({ noFloatingPromises: z.string() }) }) }) })
    .parse(JSON.parse(readFileSync("biome.json", "utf8")));
  expect(biome.linter.rules.nursery.noFloatingPromises).toBe("error");
});

test("every dependency is pinned to one version", () => {
  const versions = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
  expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
});
