import { z } from "zod";
import type { Connection } from "@/lib/provider/provider";
import { type Read, readList, readShape, wireKeyId, wireObject, wireText } from "@/lib/provider/wire-values";

const connection = wireObject({
  id: wireKeyId,
  brokerage: wireObject({ slug: wireText, name: wireText }).nullish(),
  // A connection that does not say so is neither broken nor healthy: guessing would stop or restart its jobs.
  disabled: z.boolean(),
});

/** `GET /authorizations`: the connections of a user (a "brokerage authorization" in the API). */
export function readConnections(json: unknown): Read<Connection[]> {
  const list = readShape("connections", z.array(z.unknown()), json);
  if (!list.ok) return list;
  return readList("connections", list.value, connection, ({ id, brokerage, disabled }) => ({
    connectionId: id,
    brokerage: brokerage?.slug ?? brokerage?.name ?? null,
    disabled,
  }));
}
