import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { RawCall } from "@/sandbox/snaptrade/api-call";
import { jsonReply, type Reply } from "@/sandbox/snaptrade/reply";

export type HttpServer = { url: string; close(): Promise<void> };

/** Longer than clients keep idle connections, so that a reused one is not reset by us. */
const KEEP_ALIVE_MS = 75_000;

/** Serves `answer` on 127.0.0.1. A call has arrived when its body is whole. Port 0 takes a free one. */
export async function serveHttp(port: number, answer: (call: RawCall) => Promise<Reply>): Promise<HttpServer> {
  const late = new Set<NodeJS.Timeout>();

  const send = (reply: Reply, response: ServerResponse): void => {
    if (reply.delayMs === undefined || reply.delayMs === 0) {
      write(reply, response);
      return;
    }
    const timer = setTimeout(() => {
      late.delete(timer);
      write(reply, response);
    }, reply.delayMs);
    late.add(timer);
  };

  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    readCall(request)
      .then(answer)
      .catch((error: unknown) => jsonReply(500, { error: `The simulator failed: ${String(error)}` }))
      .then((reply) => send(reply, response))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The simulator has no TCP address");

  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      for (const timer of late) clearTimeout(timer);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readCall(request: IncomingMessage): Promise<RawCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const signature = request.headers.signature;
  return {
    method: request.method ?? "GET",
    target: request.url ?? "/",
    signature: typeof signature === "string" ? signature : undefined,
    body: Buffer.concat(chunks).toString("utf8"),
  };
}

function write(reply: Reply, response: ServerResponse): void {
  const body = Buffer.from(reply.body, "utf8");
  const whole = reply.drop === undefined && !response.destroyed;
  reply.onAnswered?.(whole ? reply.status : 0);
  if (whole) {
    response.writeHead(reply.status, { ...reply.headers, "Content-Length": body.length }).end(body);
  } else if (reply.drop === "half" && !response.destroyed) {
    response.writeHead(reply.status, { ...reply.headers, "Content-Length": body.length });
    response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy());
  } else {
    response.destroy();
  }
}
