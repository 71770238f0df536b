import { Readable } from "node:stream";
import type { WireAnswer } from "@/lib/provider/classify-answer";

/** What the SDK resolves with, as far as we use it. `data` is the body as a stream. */
export type SdkResponse = { status: number; headers: object; data: unknown };

export type Sent =
  /** `bodyFault`: why the body is not whole; its beginning is in `body` all the same. */
  | { kind: "answered"; answer: WireAnswer; bodyFault: string | null }
  | { kind: "unanswered"; reason: string }
  | { kind: "aborted" };

type SendLimits = { timeoutMs: number; maxBodyBytes: number };

/**
 * Sends one request and reads its whole answer within the time limit. Never throws: axios and SDK errors carry the
 * URL, and the URL carries the user's secret, so nothing but an error's code leaves this function (I10).
 * `signal` is the run's deadline; the time limit covers everything, a body that trickles in included.
 */
export async function sendRequest(
  send: (signal: AbortSignal) => Promise<SdkResponse>,
  signal: AbortSignal,
  limits: SendLimits,
): Promise<Sent> {
  if (signal.aborted) return { kind: "aborted" };
  const controller = new AbortController();
  const stop = () => controller.abort();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    stop();
  }, limits.timeoutMs);
  signal.addEventListener("abort", stop, { once: true });
  const faultOf = (error: unknown) => (late ? `no whole answer within ${limits.timeoutMs} ms` : errorCode(error));
  try {
    const response = await send(controller.signal);
    const { body, fault } = await readBody(response.data, limits.maxBodyBytes, faultOf);
    // A status is worth more than our own deadline, a success without its body is worth nothing.
    if (signal.aborted && fault !== null && response.status === 200) return { kind: "aborted" };
    const header = headerReader(response.headers);
    return { kind: "answered", answer: { status: response.status, header, body }, bodyFault: fault };
  } catch (error) {
    return signal.aborted ? { kind: "aborted" } : { kind: "unanswered", reason: faultOf(error) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

async function readBody(
  stream: unknown,
  maxBytes: number,
  faultOf: (error: unknown) => string,
): Promise<{ body: string; fault: string | null }> {
  if (!(stream instanceof Readable)) return { body: "", fault: "no body" };
  const chunks: Buffer[] = [];
  let bytes = 0;
  let fault: string | null = null;
  try {
    // Leaving the loop early destroys the stream and its socket.
    for await (const chunk of stream) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) {
        fault = `body larger than ${maxBytes} bytes`;
        break;
      }
    }
  } catch (error) {
    fault = `body cut off: ${faultOf(error)}`;
  }
  const whole = Buffer.concat(chunks);
  try {
    return { body: new TextDecoder("utf-8", { fatal: fault === null }).decode(whole), fault };
  } catch {
    return { body: whole.toString("latin1"), fault: "body is not UTF-8" };
  }
}

function headerReader(headers: object): WireAnswer["header"] {
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => {
    const value: unknown = byName.get(name);
    return typeof value === "string" ? value : undefined;
  };
}

/** `ECONNREFUSED`, `ECONNRESET`...: never the message, which may hold a URL. */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  return "code" in error && typeof error.code === "string" && /^\w{1,40}$/.test(error.code) ? error.code : error.name;
}
