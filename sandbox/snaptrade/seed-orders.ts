import {
  type OptionContract,
  optionContract,
  optionSymbolWire,
  SECURITIES,
  universalSymbolWire,
} from "@/sandbox/snaptrade/seed-instruments";
import { awkwardDecimal, type Random } from "@/sandbox/snaptrade/seeded-random";
import { isoTimeText } from "@/sandbox/snaptrade/time-text";
import type { WireObject } from "@/sandbox/snaptrade/wire";

const DAY_MS = 86_400_000;

/**
 * Orders of the last weeks: one record a leg (SnapTrade spec, AccountOrderRecord), so the spread at the end is two
 * records with one `brokerage_order_id`. One order is older than 30 days, for the `days` parameter.
 */
export function seedOrders(random: Random, startMs: number): WireObject[] {
  const security = random.pick(SECURITIES);
  const share = { universal_symbol: universalSymbolWire(security), option_symbol: null, symbol: security.symbol };
  const spreadId = random.uuid();
  const spread = {
    order_type: "Limit",
    limit_price: "1.50",
    status: "EXECUTED",
    total_quantity: "2",
    filled_quantity: "2",
  };
  return [
    order(random, startMs - DAY_MS, { ...share, status: "EXECUTED", action: "BUY", order_type: "Market" }),
    order(random, startMs - 2 * DAY_MS, {
      ...share,
      status: "ACCEPTED",
      action: "SELL",
      order_type: "Limit",
      limit_price: awkwardDecimal(random),
      open_quantity: "5.0",
      filled_quantity: "0",
      execution_price: null,
      time_executed: null,
    }),
    order(random, startMs - 9 * DAY_MS, {
      ...share,
      status: "CANCELED",
      action: "BUY",
      order_type: "StopLimit",
      stop_price: "95.50",
      canceled_quantity: "33.333333333",
      execution_price: null,
      time_executed: null,
    }),
    order(
      random,
      startMs - 3 * DAY_MS,
      leg(spreadId, optionContract("CALL", 300), { ...spread, action: "BUY_TO_OPEN" }),
    ),
    order(
      random,
      startMs - 3 * DAY_MS,
      leg(spreadId, optionContract("PUT", 300), { ...spread, action: "SELL_TO_OPEN" }),
    ),
    order(random, startMs - 45 * DAY_MS, { ...share, status: "EXECUTED", action: "SELL", order_type: "Market" }),
  ];
}

function leg(id: string, contract: OptionContract, fields: WireObject): WireObject {
  return {
    ...fields,
    brokerage_order_id: id,
    universal_symbol: null,
    option_symbol: optionSymbolWire(contract),
    symbol: contract.ticker,
  };
}

function order(random: Random, placedMs: number, fields: WireObject): WireObject {
  return {
    brokerage_order_id: random.uuid(),
    brokerage_group_order_id: null,
    total_quantity: "33.333333333",
    open_quantity: "0",
    canceled_quantity: "0",
    filled_quantity: "33.333333333",
    execution_price: awkwardDecimal(random),
    limit_price: null,
    stop_price: null,
    trailing_stop: null,
    time_in_force: "Day",
    time_placed: isoTimeText(placedMs),
    time_updated: isoTimeText(placedMs + 60_000),
    time_executed: isoTimeText(placedMs + 60_000),
    expiry_date: null,
    quote_universal_symbol: null,
    quote_currency: null,
    child_brokerage_order_ids: null,
    ...fields,
  };
}
