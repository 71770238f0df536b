import { expect, test } from "vitest";
import { readBody } from "@/lib/webhook/read-body";

const LIMIT = 256 * 1024;
const CHUNK = 16 * 1024;

/** A sender whose chunks are counted as they are pulled. `total` null: it never ends. */
function sender(total: number | null, headers: Record<string, string> = {}) {
  const seen = { pulled: 0, cancelled: false };
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const size = total === null ? CHUNK : Math.min(CHUNK, total - seen.pulled);
        if (size === 0) return controller.close();
        seen.pulled += size;
        controller.enqueue(new Uint8Array(size));
      },
      cancel() {
        seen.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { seen, request: post(stream, headers) };
}

function post(body: BodyInit | null, headers: Record<string, string> = {}): Request {
  // Node wants `duplex` for a streamed body; the DOM types do not know it.
  const init: RequestInit & { duplex: "half" } = { method: "POST", body, headers, duplex: "half" };
  return new Request("http://service.test/", init);
}

test("a body of exactly the limit is read whole", async () => {
  const { request } = sender(LIMIT);
  expect(await readBody(request)).toMatchObject({ kind: "ok", bytes: { byteLength: LIMIT } });
});

test("a request without a body has no bytes", async () => {
  expect(await readBody(post(null))).toMatchObject({ kind: "ok", bytes: { byteLength: 0 } });
});

test.each([
  ["chunked, without a length", {}],
  ["claiming 100 bytes", { "content-length": "100" }],
  ["with a length that is no number", { "content-length": "many" }],
])("of an endless body %s no more than the limit and one chunk is pulled (B15)", async (_, headers) => {
  const { seen, request } = sender(null, headers);
  expect(await readBody(request)).toEqual({ kind: "too_large" });
  expect(seen.pulled).toBeLessThanOrEqual(LIMIT + CHUNK);
  expect(seen.cancelled).toBe(true);
});

test("a body that honestly says it is too large is refused without being read", async () => {
  const { seen, request } = sender(null, { "content-length": String(LIMIT + 1) });
  expect(await readBody(request)).toEqual({ kind: "too_large" });
  expect(seen).toEqual({ pulled: 0, cancelled: true });
});

test("a sender that never confirms the cancel does not hold the answer back", async () => {
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(CHUNK)),
    cancel: () => new Promise(() => undefined),
  });
  expect(await readBody(post(stream), CHUNK)).toEqual({ kind: "too_large" });
});

test("a body that is cut half-way is told apart from a short one", async () => {
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"webhookId":')),
    pull: (controller) => controller.error(new Error("aborted")),
  });
  expect(await readBody(post(stream))).toEqual({ kind: "cut" });
});

test("characters split between chunks come together again (B04)", async () => {
  const bytes = new TextEncoder().encode('{"name":"Délai 🙂 日本語"}');
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const read = await readBody(post(stream));
  expect(read.kind === "ok" && Buffer.from(read.bytes).equals(bytes)).toBe(true);
});
