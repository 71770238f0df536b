import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { readSecret } from "@/lib/cli/read-secret";

const input = (text: string) => {
  const stream = new PassThrough();
  stream.end(text);
  return stream;
};
const noPrompt = () => {
  throw new Error("nobody is there to be asked");
};

test("a secret from a pipe keeps everything but the line end", async () => {
  const read = (text: string) => readSecret({ kind: "stdin" }, {}, input(text), noPrompt);
  expect(await read(" a b\r\n")).toEqual({ kind: "secret", secret: " a b" });
  expect(await read("secret")).toEqual({ kind: "secret", secret: "secret" });
  expect(await read("\n")).toMatchObject({ kind: "bad" });
});

test("at a terminal the secret is asked for and never shown", async () => {
  const shown: string[] = [];
  const terminal = Object.assign(input("typed-secret\n"), { isTTY: true });
  const read = await readSecret({ kind: "stdin" }, {}, terminal, (text) => void shown.push(text));
  expect(read).toEqual({ kind: "secret", secret: "typed-secret" });
  expect(shown.join("")).toBe("User secret (not shown): \n");
});

test("at a terminal that is closed without an answer there is no secret", async () => {
  const terminal = Object.assign(input(""), { isTTY: true });
  expect(await readSecret({ kind: "stdin" }, {}, terminal, () => {})).toMatchObject({ kind: "bad" });
});

test("a variable that is not set or empty is named", async () => {
  const read = (environment: Record<string, string>) =>
    readSecret({ kind: "env", name: "USER_SECRET" }, environment, input(""), noPrompt);
  expect(await read({ USER_SECRET: "secret" })).toEqual({ kind: "secret", secret: "secret" });
  expect(await read({ USER_SECRET: "" })).toMatchObject({ kind: "bad", error: expect.stringContaining("USER_SECRET") });
  expect(await read({})).toMatchObject({ kind: "bad" });
});
