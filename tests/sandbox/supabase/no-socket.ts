/**
 * A socket that is never opened. The Supabase client refuses to be made on Node 20, which has no WebSocket of its own,
 * unless it is given one; no test uses its realtime part.
 */
export class NoSocket extends EventTarget {
  readonly CONNECTING = 0;
  readonly OPEN = 1;
  readonly CLOSING = 2;
  readonly CLOSED = 3;
  readonly readyState = 3;
  readonly url = "";
  readonly protocol = "";
  readonly onopen = null;
  readonly onmessage = null;
  readonly onclose = null;
  readonly onerror = null;
  close(): void {}
  send(): never {
    throw new Error("This service opens no realtime connection");
  }
}
