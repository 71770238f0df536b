import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { HeaderRecord } from "@/sandbox/qstash/message";
import { type ApiRequest, type Reply, refusal } from "@/sandbox/qstash/route";

/** QStash docs, changelog December 2024: a batch call may have up to 100 MB. */
const LARGEST_REQUEST_BYTES = 100 * 1024 * 1024;
/** Longer than clients keep idle connections, so that they never write into one that is being closed. */
const KEEP_ALIVE_MS = 65_000;

export type HttpServer = { url: string; close(): Promise<void> };

/** Serves `handle` on the loopback interface; port 0 takes a free one. */
export async function listen(port: number, handle: (request: ApiRequest) => Reply): Promise<HttpServer> {
  const server = createServer((request, response) => {
    serve(request, response, handle).catch(() => response.destroy());
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${portOf(server)}`, close: () => closeServer(server) };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error(`no TCP port, but ${address}`);
  return address.port;
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  handle: (request: ApiRequest) => Reply,
): Promise<void> {
  const body = await readBody(request);
  const reply = body === undefined ? refusal(413, "request too large") : handle(toApiRequest(request, body));
  if (reply.kind === "hang") return;
  if (reply.kind === "cut") {
    request.socket.destroy();
    return;
  }
  const text = reply.json === undefined ? "" : JSON.stringify(reply.json);
  response.writeHead(reply.status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > LARGEST_REQUEST_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

function toApiRequest(request: IncomingMessage, body: Buffer): ApiRequest {
  const target = request.url ?? "/";
  const mark = target.indexOf("?");
  const headers: HeaderRecord = {};
  for (const [name, values] of Object.entries(request.headersDistinct)) headers[name] = (values ?? []).join(", ");
  return {
    method: request.method ?? "GET",
    target,
    query: new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1)),
    headers,
    body,
    callerIp: request.socket.remoteAddress ?? "127.0.0.1",
  };
}
