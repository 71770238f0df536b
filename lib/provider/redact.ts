const MAX_READ = 2_000;
const MAX_KEPT = 300;

/**
 * Takes secrets and everything that looks like a URL or a query out of a text that the other side wrote, and shortens
 * it: an error may echo the request, and the request's URL carries the user's secret (I10). Shortening comes last, or
 * half a secret would no longer be recognised.
 */
export function redact(text: string, secrets: readonly string[]): string {
  const spellings = secrets.filter((secret) => secret !== "").flatMap(spellingsOf);
  // Longest first: one secret may be part of another's spelling.
  const hidden = [...new Set(spellings)].sort((a, b) => b.length - a.length);
  return hidden
    .reduce((clean, spelling) => clean.replaceAll(spelling, "[secret]"), text.slice(0, MAX_READ))
    .replace(/\b[a-z]+:\/\/\S+|\S*\?\S*=\S*/gi, "[url]")
    .slice(0, MAX_KEPT);
}

function spellingsOf(secret: string): string[] {
  const form = new URLSearchParams({ v: secret }).toString().slice("v=".length);
  return [secret, encodeURIComponent(secret), encodeURI(secret), form];
}
