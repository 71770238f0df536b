import { request } from "undici";

export type JsonReply = { status: number; headers: Record<string, string>; text: string };

/**
 * One POST over a kept-alive connection, once, whole. Why not `fetch`: Next wraps the global one in tracing and caching,
 * and its streams cost more than what is sent through them; an event makes three of these calls (measured: the three
 * clients on `fetch` took more than half of the processor time of an intake).
 * @throws on a network fault or the signal's abort; every HTTP status is a reply.
 */
export async function postJson(
  url: string,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal | null,
): Promise<JsonReply> {
  const reply = await request(url, { method: "POST", headers, body, signal });
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(reply.headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return { status: reply.statusCode, headers: flat, text: await reply.body.text() };
}

/** The same behind the signature of `fetch`, for a client that takes one. POST with a text body alone. */
export const fetchJson: typeof fetch = async (input, init) => {
  const method = init?.method ?? "GET";
  const body = init?.body;
  if (method !== "POST" || typeof body !== "string" || input instanceof Request) {
    throw new Error(`This client sends POST with a text body, not ${method} with ${typeof body}`);
  }
  const headers = Object.fromEntries(new Headers(init?.headers));
  const reply = await postJson(String(input), headers, body, init?.signal ?? null);
  const empty = reply.status === 204 || reply.status === 304;
  return new Response(empty ? null : reply.text, { status: reply.status, headers: reply.headers });
};
