import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readEnvironment } from "@/lib/cli/compose";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "environment-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

test("the process's environment wins over .env.local, and that over .env", async () => {
  vi.stubEnv("SNAPTRADE_ONE", "process");
  await writeFile(path.join(directory, ".env.local"), "SNAPTRADE_ONE=local\nSNAPTRADE_TWO=local\n");
  await writeFile(path.join(directory, ".env"), "SNAPTRADE_TWO=file\nSNAPTRADE_THREE='file # one'\n");
  expect(readEnvironment(directory)).toMatchObject({
    SNAPTRADE_ONE: "process",
    SNAPTRADE_TWO: "local",
    SNAPTRADE_THREE: "file # one",
  });
  expect(process.env.SNAPTRADE_TWO).toBeUndefined();
});

test("files that are not there are no fault; one that cannot be read is", async () => {
  expect(readEnvironment(directory)).toEqual({ ...process.env });
  expect(() => readEnvironment(path.join(directory, "\0"))).toThrow();
});
