/** `x-request-id` to `X-Request-Id`, the form in which QStash shows and sends header names. */
export function canonicalHeaderName(name: string): string {
  return name.replace(/(^|-)([a-z])/g, (part) => part.toUpperCase());
}

/** The headers of `headers` that begin with `prefix`, with `replacement` in its place. Names are lower-case. */
export function reprefixed(
  headers: Record<string, string>,
  prefix: string,
  replacement: string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => name.startsWith(prefix) && name.length > prefix.length)
      .map(([name, value]) => [replacement + name.slice(prefix.length), value]),
  );
}
