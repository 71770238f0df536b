import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";

/** What a simulator may do with the connection of a request: end it without an answer. */
export type Connection = { cut(): void };
export type FetchHandler = (request: Request, connection: Connection) => Response | Promise<Response>;
export type Listening = { url: string; port: number; close(): Promise<void> };

/**
 * Serves a fetch handler on 127.0.0.1; without a port the system picks a free one. `close` ends open connections too:
 * the idle keep-alive connection of a client would otherwise hold the process.
 */
export async function listen(handler: FetchHandler, port = 0): Promise<Listening> {
  const listener = getRequestListener(
    (request, { incoming }) => handler(request, { cut: () => incoming.socket.destroy() }),
    { overrideGlobalObjects: false },
  );
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("A listening server has no port.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
