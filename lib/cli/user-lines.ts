import { z } from "zod";
import { isId } from "@/lib/webhook/event-ids";

/** A user as an operator gives it. Messages never repeat a value: it may be the secret, in the wrong column. */
export const userEntry = z.object({
  userId: z
    .string({ error: "is missing" })
    .refine(isId, { error: "is not 1 to 128 characters of A-Z, a-z, 0-9, _, . and -" }),
  userSecret: z
    .string({ error: "is missing" })
    .regex(/^\S{1,512}$/, { error: "is empty, has white space in it, or is longer than 512 characters" }),
  authUserId: z
    .guid({ error: "is not a UUID (the id of the user in Supabase Auth)" })
    .nullish()
    .transform((id) => id ?? undefined),
});
export type UserEntry = z.infer<typeof userEntry>;

export type UserLine = { line: number; kind: "user"; user: UserEntry } | { line: number; kind: "bad"; error: string };

export function readUser(given: unknown): { kind: "user"; user: UserEntry } | { kind: "bad"; error: string } {
  const parsed = userEntry.safeParse(given);
  if (parsed.success) return { kind: "user", user: parsed.data };
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "the line"} ${message}`);
  return { kind: "bad", error: faults.join("; ") };
}

/**
 * CSV with a header (`userId,userSecret,authUserId`, in any order) or JSON lines, told apart by the first character.
 * Lines are counted from 1, as an editor shows them; empty ones are skipped.
 */
export function readUserLines(text: string): UserLine[] {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r\n|\n|\r/)
    .map((content, i) => ({ line: i + 1, content: content.trim() }))
    .filter(({ content }) => content !== "");
  const [header, ...rows] = lines;
  if (header === undefined) return [];
  if (header.content.startsWith("{")) {
    return lines.map(({ line, content }) => ({ line, ...readJsonLine(content) }));
  }
  const columns = csvCells(header.content);
  const missing = ["userId", "userSecret"].filter((name) => !columns?.includes(name));
  if (columns === null || missing.length > 0) {
    const error = `the header has no column ${missing.join(" and no column ")}; expected userId,userSecret,authUserId`;
    return [{ line: header.line, kind: "bad", error }];
  }
  return rows.map(({ line, content }) => ({ line, ...readCsvLine(columns, content) }));
}

/** The parser's own message would quote the line, and so the secret. */
function readJsonLine(content: string) {
  try {
    return readUser(JSON.parse(content));
  } catch {
    return { kind: "bad" as const, error: "is not valid JSON" };
  }
}

function readCsvLine(columns: string[], content: string) {
  const cells = csvCells(content);
  if (cells === null) return { kind: "bad" as const, error: "has a quotation mark that does not fit" };
  if (cells.length !== columns.length) {
    return { kind: "bad" as const, error: `has ${cells.length} cells, the header ${columns.length}` };
  }
  const filled = columns.map((name, i) => [name, cells[i]] as const).filter(([, cell]) => cell !== "");
  return readUser(Object.fromEntries(filled));
}

/** One line of RFC 4180, without line breaks in cells: none of ours can have one. Null: its quotes do not fit. */
function csvCells(line: string): string[] | null {
  const cells: string[] = [];
  const cell = /\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(,|$)/y;
  for (;;) {
    const match = cell.exec(line);
    if (match === null) return null;
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2]?.trim() ?? "");
    if (match[3] === "") return cells;
  }
}
