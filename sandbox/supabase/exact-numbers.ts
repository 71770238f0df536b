const MARK = "\uE000";
const MARKED = new RegExp(`"${MARK}([^"]*)"`, "g");

/**
 * PostgREST answers numeric and bigint as JSON numbers with every digit (`12.50`, `9007199254740993`); a JavaScript
 * number cannot hold them. So the driver turns them into marked strings and the answer's text gets its numbers back.
 * What is no JSON number (`NaN`, `Infinity`) stays a string, as in PostgREST.
 */
export function markNumber(text: string): string {
  return /^-?\d/.test(text) ? MARK + text : text;
}

export function unmarkNumbers(json: string): string {
  return json.replace(MARKED, "$1");
}
