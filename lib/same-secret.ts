import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Whether two secrets are equal, in a time that tells nothing about either: digests of equal length are compared, so
 * that no length and no content can make the comparison throw or end early.
 */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
