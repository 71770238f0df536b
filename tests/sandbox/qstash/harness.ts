import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import { Client, Receiver } from "@upstash/qstash";
import { onTestFinished, vi } from "vitest";
import { type QStashOptions, type RunningQStash, startQStash } from "@/sandbox/qstash/start-qstash";

export const TOKEN = "token-of-the-test";
export const CURRENT_KEY = "sig_current_key_of_the_test";
export const NEXT_KEY = "sig_next_key_of_the_test";

export type Received = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  bytes: Buffer;
  response: ServerResponse;
};

export type Destination = {
  url: string;
  received: Received[];
  /** The most calls that were ever under way at once. */
  mostAtOnce: number;
  /** Answers a call; the default answers 200 at once. */
  respond: (call: Received) => void;
};

/** A server that stands for the destination. It records every call and counts how many are under way. */
export async function startDestination(): Promise<Destination> {
  let open = 0;
  const destination: Destination = {
    url: "",
    received: [],
    mostAtOnce: 0,
    respond: ({ response }) => response.end("ok"),
  };
  const server = createServer(async (request, response) => {
    open++;
    destination.mostAtOnce = Math.max(destination.mostAtOnce, open);
    response.on("close", () => open--);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const { method = "", url: path = "", headers } = request;
    const call = { method, path, headers, body: bytes.toString(), bytes, response };
    destination.received.push(call);
    destination.respond(call);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  destination.url = `http://127.0.0.1:${portOf(server)}`;
  onTestFinished(async () => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return destination;
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no TCP port");
  return address.port;
}

export type Stage = {
  qstash: RunningQStash;
  client: Client;
  receiver: Receiver;
  destination: Destination;
  /** A plain call of the API with the token. */
  api(method: string, path: string, headers?: Record<string, string>, body?: string): Promise<ApiAnswer>;
};
export type ApiAnswer = { status: number; json: unknown };

/** Emulator, published client and receiver, and a destination. Emulated time stands still until the test advances it. */
export async function setStage(options: Partial<QStashOptions> = {}): Promise<Stage> {
  const qstash = await startQStash({
    port: 0,
    token: TOKEN,
    currentSigningKey: CURRENT_KEY,
    nextSigningKey: NEXT_KEY,
    timeScale: 0,
    ...options,
  });
  onTestFinished(() => qstash.close());
  const client = new Client({ baseUrl: qstash.url, token: TOKEN, devMode: false, retry: { retries: 0 } });
  const receiver = new Receiver({ currentSigningKey: CURRENT_KEY, nextSigningKey: NEXT_KEY, devMode: false });
  return {
    qstash,
    client,
    receiver,
    destination: await startDestination(),
    async api(method, path, headers = {}, body) {
      const response = await fetch(`${qstash.url}${path}`, {
        method,
        headers: { Authorization: `Bearer ${TOKEN}`, ...headers },
        ...(body === undefined ? {} : { body }),
      });
      const text = await response.text();
      return { status: response.status, json: text === "" ? undefined : JSON.parse(text) };
    },
  };
}

/** Waits until nothing is under way, no message could start and the destination has seen `calls` calls. */
export async function settled({ qstash, destination }: Stage, calls: number): Promise<void> {
  await vi.waitFor(
    () => {
      const { inFlight, deliveries } = qstash.state();
      const seen = destination.received.length;
      if (inFlight > 0 || seen !== calls) {
        throw new Error(
          `${seen} of ${calls} calls, ${inFlight} under way, statuses ${deliveries.map((d) => d.status)}`,
        );
      }
    },
    { timeout: 20_000, interval: 2 },
  );
}

/** Silences the client's log lines about refusals that the test provokes. */
export function quietClient(): void {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => {
    warn.mockRestore();
    error.mockRestore();
  });
}

export async function until(condition: () => boolean): Promise<void> {
  await vi.waitFor(
    () => {
      if (!condition()) throw new Error(`still not: ${condition}`);
    },
    { timeout: 20_000, interval: 2 },
  );
}
