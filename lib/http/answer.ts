const NO_STORE = { "Cache-Control": "no-store" };

/** A JSON answer. Every route's answer is for its caller only: nothing may keep it. */
export function answer(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return Response.json(body, { status, headers: { ...headers, ...NO_STORE } });
}

/** An answer of another type, such as Prometheus' text format. */
export function answerText(status: number, text: string, contentType: string): Response {
  return new Response(text, { status, headers: { "Content-Type": contentType, ...NO_STORE } });
}
