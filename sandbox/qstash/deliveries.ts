/** One request to a destination. `status` is null until it is answered and 0 if no answer came. */
export type Delivery = {
  messageId: string;
  url: string;
  status: number | null;
  retried: number;
  /** When it was sent, by the wall clock, ISO 8601 UTC. */
  at: string;
  /** The same moment in emulated milliseconds since the epoch. */
  clockMs: number;
};

/** Every request that was made to a destination, in the order of sending. */
export class Deliveries {
  readonly all: Delivery[] = [];
  readonly byPath: Record<string, number> = {};

  /** Notes a request that is being sent now; the caller fills in its status. */
  begin(messageId: string, url: string, retried: number, clockMs: number): Delivery {
    const delivery = { messageId, url, status: null, retried, at: new Date().toISOString(), clockMs };
    this.all.push(delivery);
    const { pathname } = new URL(url);
    this.byPath[pathname] = (this.byPath[pathname] ?? 0) + 1;
    return delivery;
  }
}
