export type BodyRead = { kind: "ok"; bytes: Uint8Array } | { kind: "too_large" } | { kind: "cut" };

/**
 * Reads a request body as bytes and never holds more than `limitBytes` plus the chunk that went over it: the check must
 * hold before the caller is known (I9). `Content-Length` is believed only where it refuses; a body that claims less than
 * it sends is counted chunk by chunk. What is refused is cancelled, never drained. `cut`: the sender went away half-way.
 */
export async function readBody(request: Request, limitBytes = 256 * 1024): Promise<BodyRead> {
  const stream = request.body;
  if (stream === null) return { kind: "ok", bytes: new Uint8Array(0) };
  const reader = stream.getReader();

  if (Number(request.headers.get("content-length")) > limitBytes) {
    abandon(reader);
    return { kind: "too_large" };
  }

  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { kind: "ok", bytes: Buffer.concat(chunks, size) };
      size += value.byteLength;
      if (size > limitBytes) {
        abandon(reader);
        return { kind: "too_large" };
      }
      chunks.push(value);
    }
  } catch {
    return { kind: "cut" };
  }
}

/** Not awaited: a sender that ignores the cancel must not hold the answer back. */
function abandon(reader: ReadableStreamDefaultReader<Uint8Array>): void {
  reader.cancel().catch(() => undefined);
}
