import type { Sql } from "postgres";
import { CATALOGUE_QUERIES } from "@/tests/schema/catalogue-queries";

/**
 * The schema as text, sorted, one fact a line (a function or view: a block), so that a change of the migrations shows
 * as a readable difference. Asked of the catalogue, because a `pg_dump` of another version refuses the server.
 */
export async function dumpSchema(sql: Sql): Promise<string> {
  const sections: string[] = [];
  for (const [title, query] of Object.entries(CATALOGUE_QUERIES)) {
    const rows = await sql.unsafe<{ fact: string }[]>(query);
    const facts = rows.map(({ fact }) => fact.trimEnd()).sort(byCodePoint);
    if (facts.length > 0) sections.push(`## ${title}\n\n${facts.join("\n")}\n`);
  }
  return sections.join("\n");
}

function byCodePoint(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
