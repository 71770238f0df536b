const MAX_READ = 2_000;
const MAX_KEPT = 300;

/**
 * Takes secrets and everything that looks like a URL or a query out of a text that the other side wrote, and shortens
 * it: an error may echo the request, and the request's URL carries the user's secret (I10). Shortening comes last, or
 * half a secret would no longer be recognised. Linear in the text's length, whoever wrote it.
 */
export function redact(text: string, secrets: readonly string[]): string {
  const spellings = secrets.filter((secret) => secret !== "").flatMap(spellingsOf);
  // Longest first: one secret may be part of another's spelling.
  const hidden = [...new Set(spellings)].sort((a, b) => b.length - a.length);
  const short = hidden
    .reduce((clean, spelling) => clean.replaceAll(spelling, "[secret]"), text)
    .slice(0, MAX_READ)
    .replace(/\S+/g, withoutUrl)
    .slice(0, MAX_KEPT);
  // A zero character, or half of a surrogate pair (cut here or sent so), is no text to Postgres: it would refuse the row.
  return Buffer.from(short.replace(/\p{Cc}/gu, " ")).toString();
}

function withoutUrl(word: string): string {
  const query = word.indexOf("?");
  if (query !== -1 && word.includes("=", query)) return "[url]";
  return word.replace(/\b[a-z]+:\/\/.+/i, "[url]");
}

function spellingsOf(secret: string): string[] {
  const form = new URLSearchParams({ v: secret }).toString().slice("v=".length);
  return [secret, encodeURIComponent(secret), encodeURI(secret), form];
}
