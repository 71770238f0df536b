import { z } from "zod";
import { withOccurrence } from "@/lib/provider/occurrence";
import type { Order } from "@/lib/provider/provider";
import {
  type Read,
  readList,
  readShape,
  wireId,
  wireNumber,
  wireObject,
  wireText,
  wireTime,
} from "@/lib/provider/wire-values";

const security = wireObject({ symbol: wireText, ticker: wireText }).nullish();

const order = wireObject({
  brokerage_order_id: wireId,
  status: wireText,
  action: wireText,
  universal_symbol: security,
  option_symbol: security,
  quote_universal_symbol: security,
  order_type: wireText,
  time_in_force: wireText,
  total_quantity: wireNumber,
  open_quantity: wireNumber,
  canceled_quantity: wireNumber,
  filled_quantity: wireNumber,
  execution_price: wireNumber,
  limit_price: wireNumber,
  stop_price: wireNumber,
  time_placed: wireTime,
  time_updated: wireTime,
  time_executed: wireTime,
});

/** `GET /accounts/{id}/orders`: a bare list, one element a leg; the legs of one order share its id. */
export function readOrders(json: unknown): Read<Order[]> {
  const list = readShape("orders", z.array(z.unknown()), json);
  if (!list.ok) return list;
  const legs = readList("orders", list.value, order, toLeg);
  if (!legs.ok) return legs;
  const orders = withOccurrence(
    legs.value,
    (leg) => leg.brokerageOrderId,
    // What a leg trades never changes; its status and quantities do, and must not make legs change places.
    (leg) => JSON.stringify([leg.symbol, leg.action]),
    (leg, occurrence): Order => ({ orderKey: `${leg.brokerageOrderId}#${occurrence}`, ...leg }),
  );
  return { ok: true, value: orders };
}

function toLeg(wire: z.output<typeof order>, raw: string): Omit<Order, "orderKey"> {
  return {
    brokerageOrderId: wire.brokerage_order_id,
    status: wire.status,
    action: wire.action,
    // The field `symbol` of an order is a legacy id, not a symbol (SnapTrade API reference).
    symbol: wire.option_symbol?.ticker ?? wire.universal_symbol?.symbol ?? wire.quote_universal_symbol?.symbol ?? null,
    orderType: wire.order_type,
    timeInForce: wire.time_in_force,
    totalQuantity: wire.total_quantity,
    openQuantity: wire.open_quantity,
    canceledQuantity: wire.canceled_quantity,
    filledQuantity: wire.filled_quantity,
    executionPrice: wire.execution_price,
    limitPrice: wire.limit_price,
    stopPrice: wire.stop_price,
    timePlaced: wire.time_placed,
    timeUpdated: wire.time_updated,
    timeExecuted: wire.time_executed,
    raw,
  };
}
