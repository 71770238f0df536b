import { createHash, randomBytes, randomUUID } from "node:crypto";
import { SignJWT } from "jose";

const LIFETIME_SECONDS = 300;

export type SigningKeys = { current: string; next: string };
export type ToSign = { url: string; body: Buffer; key: keyof SigningKeys; skewSeconds: number };

/**
 * Signs deliveries as QStash does (QStash docs, features/security): a JWT, HS256, bound to the destination URL and the body, valid
 * for five minutes of real time from the moment of delivery. The key is the UTF-8 text of the signing key.
 */
export class Signer {
  #keys: SigningKeys;

  constructor(keys: SigningKeys) {
    this.#keys = { ...keys };
  }

  get keys(): SigningKeys {
    return { ...this.#keys };
  }

  /** The next key becomes the current one, a fresh one takes its place (QStash docs, howto/roll-signing-keys). */
  rotate(): SigningKeys {
    this.#keys = { current: this.#keys.next, next: `sig_${randomBytes(21).toString("base64url")}` };
    return this.keys;
  }

  /** `skewSeconds` moves all times of the token: what a destination sees if its clock and QStash's differ. */
  async sign({ url, body, key, skewSeconds }: ToSign): Promise<string> {
    const issuedAt = Math.floor(Date.now() / 1_000) + skewSeconds;
    return await new SignJWT({ body: bodyHash(body) })
      .setProtectedHeader({ alg: "HS256", typ: "JWT" })
      .setIssuer("Upstash")
      .setSubject(url)
      .setIssuedAt(issuedAt)
      .setNotBefore(issuedAt)
      .setExpirationTime(issuedAt + LIFETIME_SECONDS)
      .setJti(`jwt_${randomUUID().replaceAll("-", "")}`)
      .sign(new TextEncoder().encode(this.#keys[key]));
  }
}

/** SHA-256 of the body in padded URL-safe base64, as in the example of the docs. */
function bodyHash(body: Buffer): string {
  return createHash("sha256").update(body).digest("base64").replaceAll("+", "-").replaceAll("/", "_");
}
