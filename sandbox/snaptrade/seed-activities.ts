import {
  currencyWire,
  optionContract,
  optionSymbolWire,
  SECURITIES,
  type Security,
  universalSymbolWire,
} from "@/sandbox/snaptrade/seed-instruments";
import { awkwardDecimal, type Random } from "@/sandbox/snaptrade/seeded-random";
import { dateText } from "@/sandbox/snaptrade/time-text";
import { num, type WireObject } from "@/sandbox/snaptrade/wire";

const DAY_MS = 86_400_000;

/** Histories longer than, just over, and exactly one page of 1000. */
const LONG_HISTORIES: Readonly<Record<number, number>> = { 3: 2300, 42: 1001, 99: 1000 };

function activityCount(random: Random, index: number): number {
  return LONG_HISTORIES[index] ?? 20 + random.int(40);
}

/**
 * Transactions up to the day before `startMs` (no intraday transactions: SnapTrade docs, syncing), newest first. Every
 * fourth account has two equal trades that differ in their id only; every tenth has one without a trade date.
 */
export function seedActivities(random: Random, index: number, startMs: number): WireObject[] {
  const count = activityCount(random, index);
  const daysApart = count > 100 ? 1 / 3 : 4;
  const activities = Array.from({ length: count }, (_, i) => {
    const day = dateText(startMs - DAY_MS * (1 + Math.floor(i * daysApart)));
    return seedActivity(random, day, i);
  });
  const [first] = activities;
  if (first !== undefined && index % 4 === 0) activities[1] = { ...first, id: random.uuid() };
  const last = activities.at(-1);
  if (last !== undefined && index % 10 === 4) activities[count - 1] = { ...last, trade_date: null };
  return activities;
}

function seedActivity(random: Random, day: string, i: number): WireObject {
  const security = random.pick(SECURITIES);
  switch (i % 7) {
    case 0:
      return activity(random, day, security, {
        type: "BUY",
        units: num(awkwardDecimal(random)),
        amount: num(`-${awkwardDecimal(random)}`),
      });
    case 1:
      return activity(random, day, security, {
        type: "SELL",
        units: num(`-${awkwardDecimal(random)}`),
        fee: num("1e-8"),
      });
    case 2:
      return activity(random, day, security, { type: "DIVIDEND", units: num("0.0"), price: num("0.0") });
    case 3: {
      const contract = optionContract("CALL", 200 + 5 * random.int(60));
      return activity(random, day, security, {
        type: "BUY",
        symbol: null,
        option_symbol: optionSymbolWire(contract),
        option_type: "BUY_TO_OPEN",
        units: num("2.0"),
      });
    }
    case 4:
      return activity(random, day, security, { type: "INTEREST", symbol: null, units: num("0"), price: num("0") });
    case 5:
      return activity(random, day, security, {
        type: "FEE",
        symbol: null,
        amount: num("-0.10"),
        external_reference_id: random.uuid(),
      });
    default:
      return activity(random, day, security, {
        type: "CONTRIBUTION",
        symbol: null,
        amount: num("1000.00"),
        fx_rate: num("1.3500"),
      });
  }
}

function activity(random: Random, day: string, security: Security, fields: WireObject): WireObject {
  const hour = String(random.int(8) + 13).padStart(2, "0");
  return {
    id: random.uuid(),
    symbol: universalSymbolWire(security),
    currency_universal_symbol: null,
    option_symbol: null,
    price: num(awkwardDecimal(random)),
    units: num("33.333333333"),
    amount: num(awkwardDecimal(random)),
    currency: currencyWire(security.currency),
    option_type: "",
    description: `${security.name} ${day}`,
    trade_date: `${day}T${random.int(3) === 0 ? "00" : hour}:00:00.000Z`,
    settlement_date: `${day}T00:00:00.000Z`,
    fee: num("0.0"),
    fx_rate: null,
    institution: "Simulated Brokerage",
    external_reference_id: null,
    ...fields,
  };
}
