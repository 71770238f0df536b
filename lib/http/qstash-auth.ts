import { Receiver } from "@upstash/qstash";
import { z } from "zod";
import { readBody } from "@/lib/webhook/read-body";

/** Ours are below 1 KiB; a failure callback carries the base64 of an answer that may be a platform's error page. */
const MAX_BODY_BYTES = 1024 * 1024;

/** Seconds between our clock and Upstash's that are forgiven. */
const CLOCK_TOLERANCE = 5;

const hs256 = z.object({ alg: z.literal("HS256") });
const expiring = z.object({ exp: z.number() });

export type QStashCheck =
  | { kind: "ok"; text: string }
  | { kind: "unauthorized"; reason: "no signature" | "unreadable body" | "invalid signature" };

/**
 * Whether QStash sent this request to this very route; the raw text comes back, because a body is read only once.
 * `url` is the destination as it was published: a token for another of our routes does not count here, and the
 * request's own URL is never asked (proxies change it). Every failure is a value, never an exception: `Receiver.verify`
 * throws for whatever it dislikes. It also accepts tokens without `exp` and under other algorithms, which QStash never
 * makes (QStash docs, features/security): refused here. Development mode is off, or its public keys would do.
 */
export async function verifyQStash(
  request: Request,
  options: { url: string; currentSigningKey: string; nextSigningKey: string },
): Promise<QStashCheck> {
  const signature = request.headers.get("upstash-signature");
  if (!signature) return { kind: "unauthorized", reason: "no signature" };
  const text = await readText(request);
  if (text === null) return { kind: "unauthorized", reason: "unreadable body" };

  const { url, currentSigningKey, nextSigningKey } = options;
  const receiver = new Receiver({ currentSigningKey, nextSigningKey, devMode: false });
  try {
    await receiver.verify({ signature, body: text, url, clockTolerance: CLOCK_TOLERANCE });
    const [header, claims] = signature.split(".");
    hs256.parse(decoded(header));
    expiring.parse(decoded(claims));
    return { kind: "ok", text };
  } catch {
    return { kind: "unauthorized", reason: "invalid signature" };
  }
}

async function readText(request: Request): Promise<string | null> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body.kind !== "ok") return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body.bytes);
  } catch {
    return null;
  }
}

function decoded(part = ""): unknown {
  return JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
}
