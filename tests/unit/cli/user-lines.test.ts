import { describe, expect, test } from "vitest";
import { readUserLines } from "@/lib/cli/user-lines";

const UUID = "6f1f5c1e-2f5b-4a51-9d2e-3a6c1f0e8b77";
const user = (userId: string, userSecret: string, authUserId?: string) => ({ userId, userSecret, authUserId });

describe("CSV", () => {
  test("columns are found by the header, in any order, and an empty cell is no value", () => {
    expect(readUserLines(`authUserId,userSecret,userId\n${UUID},s-1,u-1\n,s-2,u-2\n`)).toEqual([
      { line: 2, kind: "user", user: user("u-1", "s-1", UUID) },
      { line: 3, kind: "user", user: user("u-2", "s-2") },
    ]);
  });

  test("quotes, a byte order mark, Windows line ends and empty lines are taken as they are meant", () => {
    const text = `\uFEFF"userId", userSecret\r\n\r\n"u-1" , "s,""1"""\r\n`;
    expect(readUserLines(text)).toEqual([{ line: 3, kind: "user", user: user("u-1", 's,"1"') }]);
  });

  test("a header without the needed columns is the one fault of the file", () => {
    expect(readUserLines("u-1,s-1\nu-2,s-2\n")).toEqual([
      { line: 1, kind: "bad", error: expect.stringContaining("no column userId and no column userSecret") },
    ]);
  });

  test.each([
    ["u-1", "has 1 cells, the header 2"],
    ["u-1,s,x", "has 3 cells, the header 2"],
    ['u-1,"s', "has a quotation mark that does not fit"],
    ["u-1,", "userSecret is missing"],
    ["u 1,s", "userId is not 1 to 128 characters of A-Z, a-z, 0-9, _, . and -"],
    ["u-1,two words", "userSecret is empty, has white space in it, or is longer than 512 characters"],
  ])("the line %j is refused: %s", (row, error) => {
    expect(readUserLines(`userId,userSecret\n${row}\nu-9,s-9`)).toEqual([
      { line: 2, kind: "bad", error },
      { line: 3, kind: "user", user: user("u-9", "s-9") },
    ]);
  });
});

describe("JSON lines", () => {
  test("each line is a user of its own; null is no value and other members are not looked at", () => {
    const lines = [
      JSON.stringify({ userId: "u-1", userSecret: "s-1", authUserId: UUID }),
      JSON.stringify({ userId: "u-2", userSecret: "s-2", authUserId: null, email: "x" }),
    ];
    expect(readUserLines(lines.join("\n"))).toEqual([
      { line: 1, kind: "user", user: user("u-1", "s-1", UUID) },
      { line: 2, kind: "user", user: user("u-2", "s-2") },
    ]);
  });

  test.each([
    ['{"userId":"u-1","userSecret":"marker-secret"', "is not valid JSON"],
    ['["marker-secret"]', /expected object/i],
    ['{"userId":"u-1","userSecret":["marker-secret"]}', "userSecret is missing"],
    [
      '{"userId":"marker secret","userSecret":"marker-secret","authUserId":"marker-secret"}',
      /^userId is not .*; authUserId is not a UUID/,
    ],
  ])("the message about %s never repeats what stands there", (content, error) => {
    const [, bad] = readUserLines(`{"userId":"u-0","userSecret":"s-0"}\n${content}`);
    expect(bad).toMatchObject({ line: 2, kind: "bad", error: expect.stringMatching(error) });
    expect(JSON.stringify(bad)).not.toContain("marker");
  });
});

test("a file without lines has no users", () => {
  expect(readUserLines("\n \n")).toEqual([]);
});
