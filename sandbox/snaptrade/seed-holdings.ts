import {
  currencyWire,
  instrumentWire,
  OPTION_UNDERLYING,
  type OptionContract,
  optionContract,
  SECURITIES,
  type Security,
} from "@/sandbox/snaptrade/seed-instruments";
import { awkwardDecimal, type Random } from "@/sandbox/snaptrade/seeded-random";
import { num, type WireObject } from "@/sandbox/snaptrade/wire";

/** One balance a currency; `cash` and `buying_power` are raw numbers on the wire. One to three currencies. */
export function seedBalances(random: Random, index: number): WireObject[] {
  return ["USD", "CAD", "EUR"].slice(0, 1 + (index % 3)).map((code) => ({
    currency: currencyWire(code),
    cash: num(awkwardDecimal(random)),
    buying_power: random.int(4) === 0 ? null : num(awkwardDecimal(random)),
  }));
}

/** Short sellers hold less than nothing of this one. */
const SHORTED: Security = {
  kind: "stock",
  symbol: "GME",
  raw: "GME",
  name: "GameStop Corp.",
  currency: "USD",
  mic: "XNYS",
};

/**
 * Positions as `positions/all` returns them: quantities and prices are decimal strings. Every account has shares, an
 * option with its multiplier and a coin with 18 decimals; some have a short position, a second option that differs only
 * in its type, a money-market fund, or a future.
 */
export function seedPositions(random: Random, index: number): WireObject[] {
  const held = SECURITIES.slice(0, 2 + random.int(SECURITIES.length - 1));
  const strike = 200 + 5 * random.int(60);
  return [
    ...held.map((security) => sharePosition(random, security, random.pick(["10", "100.0", "33.333333333", "12.50"]))),
    ...(index % 4 === 1 ? [sharePosition(random, SHORTED, "-25.0")] : []),
    optionPosition(random, optionContract("CALL", strike)),
    ...(index % 2 === 0 ? [optionPosition(random, optionContract("PUT", strike))] : []),
    coinPosition(random),
    ...(index % 3 === 0 ? [moneyMarketPosition()] : []),
    ...(index % 5 === 0 ? [futurePosition()] : []),
  ];
}

function sharePosition(random: Random, security: Security, units: string): WireObject {
  return {
    instrument: instrumentWire(security),
    units,
    price: awkwardDecimal(random),
    cost_basis: random.int(5) === 0 ? null : awkwardDecimal(random),
    currency: security.currency,
    cash_equivalent: false,
    tax_lots: [],
  };
}

function optionPosition(random: Random, contract: OptionContract): WireObject {
  return {
    instrument: {
      kind: "option",
      id: `option-${contract.ticker.replaceAll(" ", "")}`,
      symbol: contract.ticker,
      option_type: contract.type,
      strike_price: contract.strike,
      expiration_date: contract.expiration,
      multiplier: "100",
      description: `${OPTION_UNDERLYING.raw} ${contract.expiration} ${contract.type} ${contract.strike}`,
      underlying: instrumentWire(OPTION_UNDERLYING),
    },
    units: random.pick(["1", "2.0", "-3"]),
    price: "4.15",
    cost_basis: "415.00",
    currency: "USD",
    cash_equivalent: false,
  };
}

function coinPosition(random: Random): WireObject {
  const coin = random.pick(["BTC", "ETH", "SOL"]);
  return {
    instrument: {
      kind: "crypto",
      id: `coin-${coin}`,
      symbol: coin,
      raw_symbol: coin,
      description: coin,
      currency: "USD",
    },
    units: `0.${random.digits(18)}`,
    price: random.int(6) === 0 ? null : `${random.digits(5)}.${random.digits(8)}`,
    cost_basis: null,
    currency: "USD",
    cash_equivalent: false,
  };
}

function moneyMarketPosition(): WireObject {
  return {
    instrument: {
      kind: "mutualfund",
      id: "instrument-SWVXX",
      symbol: "SWVXX",
      raw_symbol: "SWVXX",
      description: "Schwab Value Advantage Money Fund",
      currency: "USD",
    },
    units: "2500.0",
    price: "1.00",
    cost_basis: "1.00",
    currency: "USD",
    cash_equivalent: true,
  };
}

function futurePosition(): WireObject {
  return {
    instrument: {
      kind: "future",
      id: "future-ESZ7",
      symbol: "ESZ7",
      root_symbol: "ES",
      expiration_code: "Z7",
      expiration_date: "2027-12-17",
      multiplier: "50",
      currency: "USD",
      exchange: "XCME",
    },
    units: "1.0",
    price: "6120.25",
    cost_basis: null,
    currency: "USD",
    cash_equivalent: false,
  };
}
