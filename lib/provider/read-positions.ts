import { z } from "zod";
import { canonicalDecimal } from "@/lib/provider/decimal-text";
import { withOccurrence } from "@/lib/provider/occurrence";
import type { Position, Positions } from "@/lib/provider/provider";
import {
  type Read,
  readList,
  readShape,
  wireCurrency,
  wireFlag,
  wireId,
  wireNumber,
  wireObject,
  wireText,
  wireTime,
} from "@/lib/provider/wire-values";

const answer = wireObject({
  results: z.array(z.unknown()),
  data_freshness: wireObject({ as_of: wireTime }).nullish(),
});

/** The union of all kinds of instrument: what only options or futures have is null for the others. */
const instrument = wireObject({
  kind: wireId,
  id: wireText,
  symbol: wireText,
  raw_symbol: wireText,
  description: wireText,
  currency: wireCurrency,
  option_type: wireText,
  strike_price: wireNumber,
  expiration_date: wireTime,
  multiplier: wireNumber,
});

const position = wireObject({
  instrument,
  units: wireNumber,
  price: wireNumber,
  cost_basis: wireNumber,
  currency: wireCurrency,
  cash_equivalent: wireFlag,
});

/**
 * `GET /accounts/{id}/positions/all`. An empty list empties the account, so it counts only in the documented, complete
 * shape: with the time at which the brokerage said so.
 */
export function readPositions(json: unknown): Read<Positions> {
  const shape = readShape("positions", answer, json);
  if (!shape.ok) return shape;
  const { results, data_freshness } = shape.value;
  const asOf = data_freshness?.as_of ?? null;
  if (results.length === 0 && asOf === null) {
    return { ok: false, reason: "positions: an empty list without data_freshness.as_of is not a complete answer" };
  }

  const found = readList("positions.results", results, position, toPosition);
  if (!found.ok) return found;
  const positions = withOccurrence(
    found.value,
    ({ identity }) => JSON.stringify(identity),
    ({ position }) => position.raw,
    ({ identity, position }, occurrence): Position => ({
      positionKey: JSON.stringify([...identity, occurrence]),
      ...position,
    }),
  );
  return { ok: true, value: { positions, asOf } };
}

type FoundPosition = { identity: (string | null)[]; position: Omit<Position, "positionKey"> };

function toPosition(wire: z.output<typeof position>, raw: string): FoundPosition {
  const { instrument } = wire;
  const currency = wire.currency ?? instrument.currency;
  return {
    // Each contract of an option is a position of its own, also where the id should be the same or missing.
    identity: [
      instrument.kind,
      instrument.id,
      instrument.symbol ?? instrument.raw_symbol ?? instrument.description,
      instrument.option_type,
      instrument.strike_price === null ? null : canonicalDecimal(instrument.strike_price),
      instrument.expiration_date,
      currency,
    ],
    position: {
      kind: instrument.kind,
      symbol: instrument.symbol ?? instrument.raw_symbol,
      description: instrument.description,
      currency,
      units: wire.units,
      price: wire.price,
      costBasis: wire.cost_basis,
      cashEquivalent: wire.cash_equivalent ?? false,
      optionType: instrument.option_type,
      strikePrice: instrument.strike_price,
      expirationDate: instrument.expiration_date,
      multiplier: instrument.multiplier,
      raw,
    },
  };
}
