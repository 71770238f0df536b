import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";

/** `headers` in lower case. A redirect is an answer like any other; it is not followed. */
export type AttemptOutcome =
  | { kind: "answer"; status: number; headers: Record<string, string[]>; body: Buffer }
  | { kind: "error"; reason: string };

export type Attempt = {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: Buffer;
  signal: AbortSignal;
};

/** Longer answers are cut: they only show up in callbacks, DLQ and logs. */
const KEPT_ANSWER_BYTES = 1024 * 1024;
/** Shorter than the 5 s after which Node servers close idle connections, so that a delivery never meets a closing one. */
const IDLE_CONNECTION_MS = 2_000;

/** Makes the HTTP calls to destinations over kept-alive connections. */
export class Sender {
  readonly #http = new HttpAgent({ keepAlive: true, timeout: IDLE_CONNECTION_MS });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: IDLE_CONNECTION_MS });

  /** Never rejects: whatever goes wrong is an outcome. */
  send({ url, method, headers, body, signal }: Attempt): Promise<AttemptOutcome> {
    return new Promise((resolve) => {
      const fail = (error: unknown) => {
        const cause: unknown = signal.aborted ? signal.reason : error;
        resolve({ kind: "error", reason: cause instanceof Error ? cause.message : String(cause) });
      };
      try {
        const target = new URL(url);
        const secure = target.protocol === "https:";
        const length = body.length > 0 ? { "Content-Length": String(body.length) } : {};
        const options = {
          method,
          headers: { ...headers, ...length },
          agent: secure ? this.#https : this.#http,
          signal,
        };
        const request = (secure ? httpsRequest : httpRequest)(target, options);
        request.on("response", (response) => readAnswer(response).then(resolve, fail));
        request.on("error", fail);
        request.end(body);
      } catch (error) {
        fail(error);
      }
    });
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }
}

async function readAnswer(response: IncomingMessage): Promise<AttemptOutcome> {
  const chunks: Buffer[] = [];
  let kept = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk) || kept >= KEPT_ANSWER_BYTES) continue;
    chunks.push(chunk);
    kept += chunk.length;
  }
  const headers: Record<string, string[]> = {};
  for (const [name, values] of Object.entries(response.headersDistinct)) headers[name] = values ?? [];
  const body = Buffer.concat(chunks).subarray(0, KEPT_ANSWER_BYTES);
  return { kind: "answer", status: response.statusCode ?? 0, headers, body };
}
