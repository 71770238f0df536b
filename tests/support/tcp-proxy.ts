import { connect, createServer, type Socket } from "node:net";

export type TcpProxy = {
  url: string;
  /**
   * As when a router between the two forgets its connections: nothing comes through any more, and nobody is told. New
   * connections are taken and carry nothing either.
   */
  freeze(): void;
  /** New connections are carried again; those from before stay as they are. */
  heal(): void;
  /** Connections that are open towards us. */
  open(): number;
  close(): Promise<void>;
};

/** A TCP connection through which a service can be reached, until it is half open. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const clients = new Set<Socket>();
  const sockets = new Set<Socket>();
  let frozen = false;

  const server = createServer((client) => {
    clients.add(client);
    client.on("close", () => clients.delete(client));
    track(client);
    if (frozen) return;
    const upstream = connect(Number(port), hostname);
    track(upstream);
    client.pipe(upstream).pipe(client);
  });

  function track(socket: Socket): void {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    freeze() {
      frozen = true;
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
    heal() {
      frozen = false;
    },
    open: () => clients.size,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
