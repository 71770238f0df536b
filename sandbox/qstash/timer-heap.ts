export type HeapEntry = { at: number; order: number; position: number };

/** A binary heap of timers: the earliest `at` first, equal times in the order of insertion. Removal is O(log n). */
export class TimerHeap<T extends HeapEntry> {
  readonly #entries: T[] = [];

  get first(): T | undefined {
    return this.#entries[0];
  }

  get size(): number {
    return this.#entries.length;
  }

  add(entry: T): void {
    this.#place(entry, this.#entries.length);
    this.#up(entry);
  }

  /** Does nothing if the entry is no longer in the heap. */
  remove(entry: T): void {
    if (this.#entries[entry.position] !== entry) return;
    const last = this.#entries.pop();
    if (last === undefined || last === entry) return;
    this.#place(last, entry.position);
    entry.position = -1;
    this.#up(last);
    this.#down(last);
  }

  #place(entry: T, position: number): void {
    this.#entries[position] = entry;
    entry.position = position;
  }

  #swap(a: T, b: T): void {
    const position = a.position;
    this.#place(a, b.position);
    this.#place(b, position);
  }

  #up(entry: T): void {
    for (;;) {
      const parent = this.#entries[(entry.position - 1) >> 1];
      if (entry.position === 0 || parent === undefined || !before(entry, parent)) return;
      this.#swap(entry, parent);
    }
  }

  #down(entry: T): void {
    for (;;) {
      const left = this.#entries[2 * entry.position + 1];
      const right = this.#entries[2 * entry.position + 2];
      const child = left !== undefined && right !== undefined && before(right, left) ? right : left;
      if (child === undefined || !before(child, entry)) return;
      this.#swap(entry, child);
    }
  }
}

function before(a: HeapEntry, b: HeapEntry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
