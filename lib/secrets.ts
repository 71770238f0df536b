import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const VERSION = "v1";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a user secret for storage: AES-256-GCM under the first key, as `v1.<base64url of iv, tag, ciphertext>`.
 * `context` is the id of the user whose secret it is; it is authenticated, so that a row copied to another user does
 * not decrypt there. Keys are 32 bytes each (`SNAPTRADE_SECRETS_KEY`).
 */
export function encryptSecret(plain: string, keys: readonly Uint8Array[], context: string): string {
  const [key] = keys;
  if (key === undefined) throw new Error("No key to encrypt with: set SNAPTRADE_SECRETS_KEY.");
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  cipher.setAAD(authenticated(context));
  const ciphertext = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
  return `${VERSION}.${Buffer.concat([iv, cipher.getAuthTag(), ciphertext]).toString("base64url")}`;
}

/**
 * The plain secret again; every key is tried, so that rows of before a rotation stay readable. Throws, without naming a
 * value, if the text is not of this form or no key opens it for this user.
 */
export function decryptSecret(text: string, keys: readonly Uint8Array[], context: string): string {
  const plain = openSecret(text, keys, context);
  if (plain !== null) return plain;
  if (sealedIn(text) === null) {
    throw new Error(`A stored user secret is not in the form ${VERSION}.<base64url> (${text.length} characters).`);
  }
  throw new Error(
    `A stored user secret opens with none of the ${keys.length} keys of SNAPTRADE_SECRETS_KEY: ` +
      "its key was removed, or the row was altered or belongs to another user.",
  );
}

/** The plain secret, or null where `decryptSecret` would throw. */
export function openSecret(text: string, keys: readonly Uint8Array[], context: string): string | null {
  const sealed = sealedIn(text);
  if (sealed === null) return null;
  for (const key of keys) {
    const plain = open(sealed, key, context);
    if (plain !== null) return plain;
  }
  return null;
}

/** The bytes behind the version, or null if the text is not of our form. */
function sealedIn(text: string): Buffer | null {
  const [version, encoded, ...rest] = text.split(".");
  const sealed = Buffer.from(encoded ?? "", "base64url");
  const isOurs = version === VERSION && rest.length === 0 && sealed.length >= IV_BYTES + TAG_BYTES;
  return isOurs ? sealed : null;
}

function open(sealed: Buffer, key: Uint8Array, context: string): string | null {
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, IV_BYTES));
  decipher.setAAD(authenticated(context));
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const opened = decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([opened, decipher.final()]).toString("utf8");
  } catch {
    return null; // the tag does not fit
  }
}

function authenticated(context: string): Buffer {
  return Buffer.from(`${VERSION}.${context}`, "utf8");
}
