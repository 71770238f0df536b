import { z } from "zod";
import type { Balance } from "@/lib/provider/provider";
import { type Read, readList, readShape, wireCurrency, wireNumber, wireObject } from "@/lib/provider/wire-values";

const balance = wireObject({ currency: wireCurrency, cash: wireNumber, buying_power: wireNumber });

/**
 * `GET /accounts/{id}/balances`: one element a currency (SnapTrade API reference). A balance without a currency, or a
 * currency that comes twice, says nothing that could be stored.
 */
export function readBalances(json: unknown): Read<Balance[]> {
  const list = readShape("balances", z.array(z.unknown()), json);
  if (!list.ok) return list;
  const parsed = readList("balances", list.value, balance, (wire) => wire);
  if (!parsed.ok) return parsed;

  const byCurrency = new Map<string, Balance>();
  for (const [index, { currency, cash, buying_power }] of parsed.value.entries()) {
    if (currency === null) return { ok: false, reason: `balances[${index}]: no currency` };
    if (byCurrency.has(currency)) return { ok: false, reason: `balances[${index}]: ${currency} comes twice` };
    byCurrency.set(currency, { currency, cash, buyingPower: buying_power });
  }
  return { ok: true, value: [...byCurrency.values()] };
}
