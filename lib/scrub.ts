/** Replaces every secret in a text, so that it may be logged, stored or answered (I10). */
export type Scrub = (text: string) => string;

const MARK = "[redacted]";

/** Shorter "secrets" would blot out ordinary words; `parseEnv` lets none through where it matters. */
const MIN_SECRET_LENGTH = 6;

/**
 * Secrets that are not known beforehand, by their place: bearer tokens, and the parameters and members in which
 * SnapTrade and Upstash carry secrets (the SnapTrade SDK puts `userSecret` into each URL and each error message).
 */
const BY_PLACE: readonly [RegExp, string][] = [
  [/\b(Bearer\s+)[^\s"',;]+/gi, `$1${MARK}`],
  [/\b((?:user|webhook)?secret|signature|token|qstash_token|password)=[^&\s"'#]+/gi, `$1=${MARK}`],
  [/("(?:user|webhook)?secret\\?"\s*:\s*\\?")[^"\\]+/gi, `$1${MARK}`],
];

/** Knows each secret as it is, inside JSON and inside a URL. The longest goes first: one may be part of another. */
export function createScrub(secrets: readonly string[]): Scrub {
  const forms = new Set(
    secrets
      .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
      .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]),
  );
  const sorted = [...forms].sort((a, b) => b.length - a.length);
  const known = sorted.length > 0 ? new RegExp(sorted.map(escapeRegExp).join("|"), "g") : null;
  return (text) => {
    const scrubbed = known === null ? text : text.replace(known, MARK);
    return BY_PLACE.reduce((result, [pattern, mark]) => result.replace(pattern, mark), scrubbed);
  };
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
