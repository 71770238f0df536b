import { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { fuzzRuns } from "@/tests/fuzz/runs";
import { type ServedApp, serveApp } from "@/tests/support/serve-app";

const LIMIT = 256 * 1024;
const BODY = 10 * 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024, 0x78);
/** A thousand in the long run. */
const SENDERS = fuzzRuns(200, 0.01).numRuns;
/** The limit itself, and what Node's parser has handed over when the reader stops: buffers and the chunk under way. */
const BOUND = 2 * LIMIT;

let app: ServedApp<object>;
let url: URL;

beforeAll(async () => {
  app = await serveApp({});
  url = new URL(app.url);
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(() => app.close());

/** Bytes that the server took off its sockets, for each request. */
function countBodies(): Map<IncomingMessage, number> {
  const taken = new Map<IncomingMessage, number>();
  const push = IncomingMessage.prototype.push;
  vi.spyOn(IncomingMessage.prototype, "push").mockImplementation(function (this: IncomingMessage, chunk, encoding) {
    // The other side of a connection is a message too: an answer has a status.
    if (chunk instanceof Uint8Array && this.statusCode === null) taken.set(this, (taken.get(this) ?? 0) + chunk.length);
    return push.call(this, chunk, encoding);
  });
  return taken;
}

/** Sends the whole body as fast as the server takes it; ends with the answer's status, or null where the connection was cut. */
function send(headers: string[], frame: (chunk: Buffer) => Buffer): Promise<number | null> {
  return new Promise((resolve) => {
    const socket = connect(Number(url.port), url.hostname);
    let answer = "";
    let sent = 0;
    const more = (): void => {
      if (sent >= BODY || socket.destroyed || answer !== "") return;
      sent += CHUNK.length;
      socket.write(frame(CHUNK), more);
    };
    socket.on("connect", () => {
      socket.write(["POST /api/snaptrade/webhook HTTP/1.1", "host: x", ...headers, "", ""].join("\r\n"), more);
    });
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1");
      socket.end();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(answer === "" ? null : Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1])));
  });
}

const plain = (chunk: Buffer) => chunk;
const chunked = (chunk: Buffer) =>
  Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]);

test("of bodies of 10 MB that come at once, each is refused and a bounded part of it taken in, and nobody is asked", async () => {
  const taken = countBodies();
  const before = { redis: app.stack.redis.requests(), postgres: app.stack.supabase.requests() };
  const statuses = await Promise.all(
    Array.from({ length: SENDERS }, (_, i) =>
      i % 2 === 0
        ? send(["transfer-encoding: chunked"], chunked)
        : send([`content-length: ${BODY}`, "signature: forged"], plain),
    ),
  );
  // A sender that goes on after the refusal may see its connection cut before it has read the answer.
  expect(statuses.filter((status) => status !== 413 && status !== null)).toEqual([]);
  const bytes = [...taken.values()];
  expect(bytes.length).toBeGreaterThanOrEqual(statuses.filter((status) => status === 413).length);
  expect(bytes.length).toBeGreaterThan(SENDERS / 2);
  expect(Math.max(...bytes)).toBeLessThanOrEqual(BOUND);
  expect({ redis: app.stack.redis.requests(), postgres: app.stack.supabase.requests() }).toEqual(before);
}, 120_000);
