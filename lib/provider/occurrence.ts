/**
 * Numbers the items that share an identity 0, 1, 2..., so that two genuine equals stay two. Within one identity the
 * numbers follow `order`, not the place in the list: the same answer in another order makes the same keys, and so no
 * write. Items keep their places.
 */
export function withOccurrence<T, R>(
  items: readonly T[],
  identity: (item: T) => string,
  order: (item: T) => string,
  make: (item: T, occurrence: number) => R,
): R[] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(identity(item));
    if (group) group.push(item);
    else groups.set(identity(item), [item]);
  }
  const occurrences = new Map<T, number>();
  for (const group of groups.values()) {
    group.sort((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0));
    for (const [occurrence, item] of group.entries()) occurrences.set(item, occurrence);
  }
  return items.map((item) => make(item, occurrences.get(item) ?? 0));
}
