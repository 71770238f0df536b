import ms from "ms";
import { z } from "zod";

/** Reads one variable's text; what it does not take is told as what was expected. */
function reader<T>(expected: string, read: (text: string) => T | null) {
  return z.string(expected).transform((text, context) => {
    const value = read(text);
    if (value !== null) return value;
    context.addIssue({ code: "custom", message: expected });
    return z.NEVER;
  });
}

export function text(expected: string) {
  return reader(expected, (given) => given);
}

/** A credential that goes into a header as it stands: a character that no header takes must not be found on the way out. */
export function token(expected: string) {
  return reader(`${expected}, printable ASCII characters without white space`, (given) => {
    return /^[!-~]+$/.test(given) ? given : null;
  });
}

/** A bearer token as a header can carry it. */
export function bearerSecret() {
  return reader("8 or more printable ASCII characters without white space around them", (given) => {
    return /^[!-~][ -~]{6,}[!-~]$/.test(given) && given !== "undefined" ? given : null;
  });
}

/** Comma-separated; white space and empty entries fall away, at least one must stay. */
export function keyList(expected: string) {
  return reader(expected, (given) => {
    const keys = splitKeys(given);
    return keys.length > 0 ? keys : null;
  });
}

/** Base64 of 32 bytes each, which is 43 characters and one for padding. */
export function aesKeyList() {
  return reader("base64 of 32 bytes, several with commas (openssl rand -base64 32)", (given) => {
    const keys = splitKeys(given);
    const isValid = keys.length > 0 && keys.every((key) => /^[A-Za-z0-9+/]{43}=?$/.test(key));
    return isValid ? keys.map((key) => Buffer.from(key, "base64")) : null;
  });
}

function splitKeys(given: string): string[] {
  return given
    .split(",")
    .map((key) => key.trim())
    .filter((key) => key !== "");
}

/** Without credentials and without a slash at the end, so that paths can be appended. */
export function url(expected: string) {
  return reader(expected, (given) => {
    const parsed = parseUrl(given);
    // Also an empty query or fragment: what is appended to it would be no path.
    return parsed && !/[?#]/.test(parsed.href) ? parsed.href.replace(/\/+$/, "") : null;
  });
}

/** Scheme and host only: routes live at the root, and QStash signs the exact destination. */
export function origin(expected: string) {
  return reader(expected, (given) => {
    const parsed = parseUrl(given);
    return parsed && parsed.href === `${parsed.origin}/` ? parsed.origin : null;
  });
}

function parseUrl(given: string): URL | null {
  if (!URL.canParse(given)) return null;
  const parsed = new URL(given);
  const isHttp = parsed.protocol === "https:" || parsed.protocol === "http:";
  return isHttp && parsed.username === "" && parsed.password === "" ? parsed : null;
}

/** The longest that Postgres's dates and Redis's lifetimes surely take. */
const LONGEST = "10000d";

/** In milliseconds; the unit is required, because a bare number has been read as the wrong one too often. */
export function duration(minimum: "1ms" | "1s" = "1ms") {
  return reader(`a duration with its unit, such as 90s, 30m or 24h, from ${minimum} to ${LONGEST}`, (given) => {
    const value = isDuration(given) ? Math.round(ms(given)) : Number.NaN;
    return value >= ms(minimum) && value <= ms(LONGEST) ? value : null;
  });
}

function isDuration(given: string): given is ms.StringValue {
  return /^\d{1,9}(\.\d{1,3})?\s?(ms|s|m|h|d)$/.test(given);
}

export function wholeNumber() {
  return reader("a whole number above 0", (given) => {
    return /^\d{1,9}$/.test(given) && Number(given) > 0 ? Number(given) : null;
  });
}

export function share() {
  return reader("a number between 0 and 1, both excluded", (given) => {
    return /^\d*\.\d+$/.test(given) && Number(given) > 0 && Number(given) < 1 ? Number(given) : null;
  });
}
