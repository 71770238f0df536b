import { EventEmitter } from "node:events";
import { request } from "undici";

export type JsonReply = { status: number; text: string };

/**
 * One POST over a kept-alive connection, once, whole, within `timeoutMs`. Why not `fetch`: Next wraps the global one in
 * tracing and caching, and its streams cost more than what is sent through them; an accepted event makes three of
 * these calls (measured with all clients on `fetch`: they took more than half of the processor time of an intake).
 * @throws on a network fault or when the time is up; every HTTP status is a reply.
 */
export async function postJson(
  url: string,
  headers: Record<string, string>,
  body: string,
  timeoutMs: number,
): Promise<JsonReply> {
  const limit = new TimeLimit(timeoutMs);
  try {
    const reply = await request(url, { method: "POST", headers, body, signal: limit });
    return { status: reply.statusCode, text: await reply.body.text() };
  } finally {
    limit.clear();
  }
}

/**
 * The same behind the signature of `fetch`, for a client that takes one and needs of the answer its status and text alone.
 * POST with a text body alone, no signal.
 */
export function createJsonFetch(timeoutMs: number): typeof fetch {
  return async (input, init) => {
    const method = init?.method ?? "GET";
    const body = init?.body;
    if (method !== "POST" || typeof body !== "string" || input instanceof Request) {
      throw new Error(`This client sends POST with a text body, not ${method} with ${typeof body}`);
    }
    const headers = Object.fromEntries(new Headers(init?.headers));
    const { status, text } = await postJson(String(input), headers, body, timeoutMs);
    return new TextResponse(text, { status });
  };
}

/** undici takes an emitter in the place of an AbortSignal, which spares each call the making of a signal and its timeout. */
class TimeLimit extends EventEmitter {
  readonly #timer: NodeJS.Timeout;

  constructor(readonly timeoutMs: number) {
    super();
    this.#timer = setTimeout(() => this.emit("abort"), timeoutMs);
  }

  /** What the call is rejected with. */
  get reason(): Error {
    return new DOMException(`no answer within ${this.timeoutMs} ms`, "TimeoutError");
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/** A response whose text is there already: a body made of it would be a stream, to write it and to read it again. */
class TextResponse extends Response {
  readonly #text: string;

  constructor(text: string, init: ResponseInit) {
    super(null, init);
    this.#text = text;
  }

  override text(): Promise<string> {
    return Promise.resolve(this.#text);
  }
}
