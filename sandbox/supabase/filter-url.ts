const NOT_A_FILTER = new Set(["select", "order", "limit", "offset", "on_conflict", "columns", "apikey"]);
const COMPARISON = /^((?:not\.)?(?:eq|neq|gt|gte|lt|lte|isdistinct))\.(.*)$/s;
const LIST = /^((?:not\.)?in)\.\((.*)\)$/s;

/**
 * lite compares a text column with a number when the filter's value looks like one, so that `12.50` or `007` finds
 * nothing. Quoted, the value stays text; a number column takes it as well.
 */
export function quoteNumericFilters(url: string): string {
  const quoted = new URL(url);
  if (!quoted.pathname.startsWith("/rest/v1/") || quoted.pathname.startsWith("/rest/v1/rpc/")) return url;
  const filters = [...quoted.searchParams].map(([name, value]) => [
    name,
    NOT_A_FILTER.has(name) ? value : quoteFilter(value),
  ]);
  quoted.search = new URLSearchParams(filters).toString();
  return quoted.href;
}

function quoteFilter(filter: string): string {
  return filter
    .replace(COMPARISON, (_, operator: string, value: string) => `${operator}.${quote(value)}`)
    .replace(LIST, (whole, operator: string, list: string) =>
      list.includes('"') ? whole : `${operator}.(${list.split(",").map(quote).join(",")})`,
    );
}

/** Only what a number would not give back: `42` may stay a number, `042`, `4.20`, `4e2` and `0x2a` may not. */
function quote(value: string): string {
  const number = Number(value);
  const changes = value.trim() !== "" && Number.isFinite(number) && String(number) !== value;
  return changes ? `"${value}"` : value;
}
