import type { SyncKey } from "@/lib/domain";
import type { MemoryPostgres } from "@/tests/histories/memory-postgres";
import type { Upstream } from "@/tests/histories/upstream";

/** An event that was answered as safe: its key, and what SnapTrade had when it came. */
export type Promised = SyncKey & { webhookId: string; version: number };

/**
 * Looks at everything after each call that was made, and says which guarantee is broken. `promised` is what the service
 * owes by its answers.
 */
export class Watch {
  readonly promised: Promised[] = [];
  readonly faults: string[] = [];
  readonly #stored = new Map<string, number>();
  #fence = 0;
  #blocked = { client: 0, hold: 0, accounts: new Map<string, number>() };

  constructor(
    readonly postgres: MemoryPostgres,
    readonly upstream: Upstream,
    readonly now: () => number,
  ) {}

  /** After a call of Postgres: I2, I3, I4. */
  look(): void {
    const { jobs, events } = this.postgres;
    for (const status of ["queued", "running"]) {
      const open = jobs
        .filter((job) => job.status === status)
        .map(({ workType, accountId }) => `${workType} ${accountId}`);
      if (new Set(open).size < open.length) this.faults.push(`I3: two ${status} jobs of one key: ${open.join(", ")}`);
    }
    if (new Set(events.map(({ webhookId }) => webhookId)).size < events.length) {
      this.faults.push("I2: a webhook id was accepted twice");
    }
    for (const [key, version] of storedVersions(this.postgres)) {
      if (version < (this.#stored.get(key) ?? 0)) this.faults.push(`I4: ${key} went back to version ${version}`);
      this.#stored.set(key, version);
    }
  }

  began(fence: number): void {
    if (fence <= this.#fence) this.faults.push(`I4: fence ${fence} after ${this.#fence}`);
    this.#fence = fence;
  }

  /** What the budget was told: lengths from now; a maximum each, whatever comes later (I6). */
  limited(accountId: string, hold: number, client: number, account: number): void {
    const { accounts } = this.#blocked;
    const later = (until: number, length: number) => Math.max(until, length > 0 ? this.now() + length : 0);
    this.#blocked.hold = later(this.#blocked.hold, hold);
    this.#blocked.client = later(this.#blocked.client, client);
    accounts.set(accountId, later(accounts.get(accountId) ?? 0, account));
  }
  redisForgot(): void {
    this.#blocked = { client: 0, hold: 0, accounts: new Map() };
  }
  admitted(accountId: string): void {
    const { client, hold, accounts } = this.#blocked;
    const until = Math.max(client, hold, accounts.get(accountId) ?? 0);
    if (until > this.now())
      this.faults.push(`I6: a run of ${accountId} was admitted ${until - this.now()} ms too early`);
  }

  /** At rest: I1, and that nothing is left open (I8). */
  atRest(): void {
    const { jobs, events, accounts, connections } = this.postgres;
    for (const { id, status } of jobs) {
      if (status === "queued" || status === "running") this.faults.push(`I8: job ${id} is still ${status}`);
    }
    for (const { webhookId, finished, outcome } of events) {
      if (!finished && outcome !== "waiting") this.faults.push(`I8: event ${webhookId} is not finished`);
    }
    const stored = storedVersions(this.postgres);
    for (const { webhookId, workType, accountId, version } of this.promised) {
      const account = accounts.get(accountId);
      const gone = account?.removedAt !== null || connections.get(account.connectionId)?.disabled === true;
      const dead = jobs.some(
        (job) => job.workType === workType && job.accountId === accountId && job.status === "dead",
      );
      const have = stored.get(`${workType} ${accountId}`) ?? 0;
      if (have < version && !gone && !dead) {
        this.faults.push(
          `I1: ${workType} of ${accountId} is at version ${have}, event ${webhookId} told of ${version}`,
        );
      }
    }
  }
}

/** What each key's stored data says, part by part: the oldest part counts. */
function storedVersions(postgres: MemoryPostgres): Map<string, number> {
  const versions = new Map<string, number>();
  for (const [accountId, { holdings, transactions }] of postgres.accounts) {
    const { balances, positions, orders } = holdings;
    const parts = [balances?.[0]?.cash, positions?.positions[0]?.units, orders?.[0]?.totalQuantity];
    versions.set(`holdings ${accountId}`, Math.min(...parts.map((part) => Number(part ?? 0))));
    let newest = 0;
    while (transactions.has(`tx-${newest + 1}`)) newest += 1;
    versions.set(`transactions ${accountId}`, newest);
  }
  return versions;
}
