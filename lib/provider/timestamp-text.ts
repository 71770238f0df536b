const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s?(?:([Zz])|([+-])(\d{2})(?::?(\d{2}))?)?)?$/;

/**
 * A date or time of the provider as text that Postgres `timestamptz` accepts: `YYYY-MM-DD` stays a date, anything with
 * a time becomes UTC with the fraction that was sent (microseconds; JavaScript's Date would cut them). A time without
 * an offset is read as UTC. `null` if it is no real date: a date we cannot read is a date we do not have.
 *
 * SnapTrade sends `2024-06-28 18:42:46.561408+00:00` (with a space) in `sync_status.holdings`, a bare date in
 * `sync_status.transactions`, and `...T...Z` elsewhere (SnapTrade API reference, Account).
 */
export function timestampText(text: string): string | null {
  const match = TIMESTAMP.exec(text.trim());
  if (!match) return null;
  const [, year = "", month = "", day = "", hour, minute = "", second = "00", fraction = "", , sign, oh = "", om] =
    match;
  const date = `${year}-${month}-${day}`;
  if (year === "0000" || !isRealTime(`${date}T00:00:00Z`)) return null;
  if (hour === undefined) return date;

  const wallClock = `${date}T${hour}:${minute}:${second}Z`;
  if (!isRealTime(wallClock)) return null;
  const offsetMinutes = sign ? Number(oh) * 60 + Number(om ?? "0") : 0;
  if (offsetMinutes >= 16 * 60) return null;
  const instant = new Date(Date.parse(wallClock) - offsetMinutes * 60_000 * (sign === "-" ? -1 : 1));
  if (instant.getUTCFullYear() < 1 || instant.getUTCFullYear() > 9999) return null;
  const micros = fraction.slice(0, 6).replace(/0+$/, "");
  return `${instant.toISOString().slice(0, 19)}${micros && `.${micros}`}Z`;
}

/** V8 rolls 31 June over to 1 July and 24:00 to the next day; Postgres refuses the former, so both are refused here. */
function isRealTime(iso: string): boolean {
  const parsed = new Date(iso);
  return !Number.isNaN(parsed.getTime()) && `${parsed.toISOString().slice(0, 19)}Z` === iso;
}
