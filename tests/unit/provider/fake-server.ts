import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createProvider, type ProviderOptions } from "@/lib/provider/create-provider";
import type { Provider, ProviderUser } from "@/lib/provider/provider";

/** A plain HTTP server that answers as each test says, and keeps what it was asked. */
export type FakeServer = { url: string; requests: IncomingMessage[]; close: () => Promise<void> };

export async function startFakeServer(answer: RequestListener): Promise<FakeServer> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The fake server has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** Nothing but the marker may ever leave through a reason: it has characters that a URL encodes. */
export const SECRET_MARKER = "s3cr3t-marker/with space+&%";
export const CONSUMER_KEY = "consumer-key-marker";
export const USER: ProviderUser = { userId: "user-42", userSecret: SECRET_MARKER };
export const NOW = Date.UTC(2026, 10, 29, 12, 0, 0);
export const COOLDOWN = { defaultMs: 60_000, maxMs: 900_000 };

export function providerAt(baseUrl: string, options: Partial<ProviderOptions> = {}): Provider {
  return createProvider({
    clientId: "CLIENT",
    consumerKey: CONSUMER_KEY,
    baseUrl,
    clock: () => NOW,
    cooldown: COOLDOWN,
    ...options,
  });
}

export function sendJson(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(body);
}

/** A signal that never fires. */
export function noDeadline(): AbortSignal {
  return new AbortController().signal;
}
