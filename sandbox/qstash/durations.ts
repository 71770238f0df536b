const UPSTASH_UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const GO_UNITS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** `50s`, `10h`, `1d10h30m` to milliseconds (QStash OpenAPI: Upstash-Delay, Upstash-Timeout); undefined if it is none. */
export function parseUpstashDuration(text: string): number | undefined {
  return parse(text, UPSTASH_UNITS);
}

/** A Go duration such as `6m5s` or `1.5h` to milliseconds (QStash docs, features/retry: ns, us, ms, s, m, h). */
export function parseGoDuration(text: string): number | undefined {
  return parse(text, GO_UNITS);
}

function parse(text: string, units: Record<string, number>): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([a-zµμ]+)/g)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join("") !== text) return undefined;
  let total = 0;
  for (const [, amount, unit] of parts) {
    const size = units[unit ?? ""];
    if (size === undefined) return undefined;
    total += Number(amount) * size;
  }
  return total;
}
