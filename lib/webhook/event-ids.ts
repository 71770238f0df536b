import { createHash } from "node:crypto";

const ID = /^[A-Za-z0-9_.-]{1,128}$/;

/** The form in which an id may become a key, a row or a log value. SnapTrade's own example ids are not valid UUIDs. */
export function isId(text: string): boolean {
  return ID.test(text);
}

/** `sha256-<hex>` of a text: the id of what has none of its own. */
export function digestId(text: string): string {
  return `sha256-${createHash("sha256").update(text, "utf8").digest("hex")}`;
}

/**
 * A webhook id that can be stored and claimed. Ids that begin with `error_` are digested too: the unique index that
 * keeps "accepted at most once" (I2) leaves them out.
 */
export function webhookIdOf(text: string): string {
  return isId(text) && !text.startsWith("error_") ? text : digestId(text);
}
