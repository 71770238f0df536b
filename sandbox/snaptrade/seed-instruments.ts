import { num, type WireObject } from "@/sandbox/snaptrade/wire";

export type Security = {
  kind: "stock" | "etf" | "adr";
  symbol: string;
  raw: string;
  name: string;
  currency: string;
  mic: string;
};

export const SECURITIES: readonly Security[] = [
  { kind: "stock", symbol: "AAPL", raw: "AAPL", name: "Apple Inc.", currency: "USD", mic: "XNAS" },
  {
    kind: "stock",
    symbol: "BRK.B",
    raw: "BRK.B",
    name: "Berkshire Hathaway Inc. Class B",
    currency: "USD",
    mic: "XNYS",
  },
  { kind: "stock", symbol: "SHOP.TO", raw: "SHOP", name: "Shopify Inc.", currency: "CAD", mic: "XTSE" },
  {
    kind: "stock",
    symbol: "MC.PA",
    raw: "MC",
    name: "LVMH Moët Hennessy Louis Vuitton SE",
    currency: "EUR",
    mic: "XPAR",
  },
  { kind: "adr", symbol: "TSM", raw: "TSM", name: "Taiwan Semiconductor ADR", currency: "USD", mic: "XNYS" },
  { kind: "etf", symbol: "VTI", raw: "VTI", name: "Vanguard Total Stock Market ETF", currency: "USD", mic: "ARCX" },
  { kind: "etf", symbol: "VAB.TO", raw: "VAB", name: "Vanguard Canadian Aggregate Bond", currency: "CAD", mic: "XTSE" },
];

const CURRENCY_NAMES: Readonly<Record<string, string>> = {
  USD: "US Dollar",
  CAD: "Canadian Dollar",
  EUR: "Euro",
};

/** The currency object of balances and activities; the id depends on the code only. */
export function currencyWire(code: string): WireObject {
  return { id: `currency-${code.toLowerCase()}`, code, name: CURRENCY_NAMES[code] ?? code };
}

/** The instrument object of `positions/all`. */
export function instrumentWire(security: Security): WireObject {
  return {
    kind: security.kind,
    id: `instrument-${security.symbol}`,
    symbol: security.symbol,
    raw_symbol: security.raw,
    description: security.name,
    currency: security.currency,
    exchange: security.mic,
    figi_instrument: null,
  };
}

/** The older UniversalSymbol object, which orders and activities still carry. */
export function universalSymbolWire(security: Security): WireObject {
  return {
    id: `symbol-${security.symbol}`,
    symbol: security.symbol,
    raw_symbol: security.raw,
    description: security.name,
    currency: currencyWire(security.currency),
    exchange: { id: `exchange-${security.mic}`, code: security.mic, mic_code: security.mic, name: security.mic },
    type: {
      id: `type-${security.kind}`,
      code: security.kind === "stock" ? "cs" : security.kind,
      description: security.kind,
    },
    figi_code: null,
    figi_instrument: null,
    currencies: [],
  };
}

export type OptionContract = { ticker: string; type: "CALL" | "PUT"; strike: string; expiration: string };

/** What every seeded option is written on. */
export const OPTION_UNDERLYING: Security = {
  kind: "stock",
  symbol: "SPOT",
  raw: "SPOT",
  name: "Spotify Technology S.A.",
  currency: "USD",
  mic: "XNYS",
};

/** An OCC ticker keeps its padding spaces: `SPOT  271217C00240000`. */
export function optionContract(type: "CALL" | "PUT", strikeDollars: number): OptionContract {
  const strike = String(strikeDollars * 1000).padStart(8, "0");
  return {
    ticker: `${OPTION_UNDERLYING.raw.padEnd(6)}271217${type.charAt(0)}${strike}`,
    type,
    strike: `${strikeDollars}.00`,
    expiration: "2027-12-17",
  };
}

/** The older OptionsSymbol object: its strike is a number, not a string. */
export function optionSymbolWire(contract: OptionContract): WireObject {
  return {
    id: `option-${contract.ticker.replaceAll(" ", "")}`,
    ticker: contract.ticker,
    option_type: contract.type,
    strike_price: num(contract.strike),
    expiration_date: contract.expiration,
    is_mini_option: false,
    underlying_symbol: universalSymbolWire(OPTION_UNDERLYING),
  };
}
