import { isoTimeText } from "@/sandbox/snaptrade/time-text";

/** `status` is null until the call is answered, and 0 when it never got a whole answer. */
export type LoggedCall = { at: string; method: string; path: string; account: string | null; status: number | null };
type Entry = { atMs: number; method: string; path: string; account: string | null; status: number | null };

/** Every call to the API in the order of arrival, refused and failed ones too. Never a query: secrets travel there. */
export class CallLog {
  #entries: Entry[] = [];
  #count429 = 0;

  /** Lists a call; the returned function notes how it was answered. */
  arrive(atMs: number, method: string, path: string, account: string | null): (status: number) => void {
    const entry: Entry = { atMs, method, path, account, status: null };
    this.#entries.push(entry);
    return (status) => {
      entry.status = status;
    };
  }

  throttled(): void {
    this.#count429 += 1;
  }

  get count429(): number {
    return this.#count429;
  }

  calls(): LoggedCall[] {
    return this.#entries.map(({ atMs, ...entry }) => ({ at: isoTimeText(atMs), ...entry }));
  }

  reset(): void {
    this.#entries = [];
    this.#count429 = 0;
  }
}
