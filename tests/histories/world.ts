import type { SyncKey, WorkType } from "@/lib/domain";
import { isAway, type ScriptRunner } from "@/lib/guards/redis-scripts";
import { acceptBulk } from "@/lib/jobs/accept-bulk";
import { publishJobs } from "@/lib/jobs/publish-jobs";
import { FAILURE_PATH } from "@/lib/jobs/publisher";
import { parseMessage } from "@/lib/jobs/receive-delivery";
import { receiveFailedMessage } from "@/lib/jobs/receive-failed-message";
import { reconcile } from "@/lib/jobs/reconcile";
import { replayDead } from "@/lib/jobs/replay-dead";
import { runJob } from "@/lib/jobs/run-job";
import { type RunOutcome, workerAnswer } from "@/lib/jobs/worker-answer";
import type { Service } from "@/lib/service";
import { keys } from "@/lib/snaptrade-webhook-guards";
import { StoreError } from "@/lib/store/call-function";
import type { Store } from "@/lib/store/store";
import { receiveWebhook } from "@/lib/webhook/receive-webhook";
import { Signer } from "@/sandbox/qstash/signer";
import { APP_URL, ENV, GUARD_SETTINGS, SECRET, USER, WEBHOOK_SECRET } from "@/tests/histories/env";
import { Fiber } from "@/tests/histories/fibers";
import { inTurns, quietLogger } from "@/tests/histories/in-turns";
import { MemoryPostgres } from "@/tests/histories/memory-postgres";
import { MemoryRedis } from "@/tests/histories/memory-redis";
import { MessageQueue, type Waiting } from "@/tests/histories/message-queue";
import { Upstream } from "@/tests/histories/upstream";
import { Watch } from "@/tests/histories/watch";

export const CONNECTION = "conn-0000";
export const ACCOUNTS = ["acct-0000", "acct-0001"];
const signer = new Signer({ current: ENV.qstash.currentSigningKey, next: ENV.qstash.nextSigningKey });

export type Ports = { store: Store; scripts: ScriptRunner };
/** Real parts behind the ones in memory, which must be told of what happens to them from outside. */
export type Mirror = {
  ports: Ports;
  pass(ms: number): Promise<void>;
  flush(): Promise<void>;
  /** Null: the key is gone. */
  put(key: string, value: string | null): Promise<void>;
};
type WebhookFields = { webhookId: string; eventType: string; accountId: string };
type Told = SyncKey & { version: number };
type Posted = { event: WebhookFields; told: Told[] };

/**
 * The real core over parts in memory, one call of a port at a time: whoever plays a history says which piece of work
 * makes its next call, what that call meets, and when time passes.
 */
export class World {
  #passed = 0;
  #ids = 0;
  readonly fibers: Fiber[] = [];
  readonly redis: MemoryRedis;
  readonly postgres: MemoryPostgres;
  readonly queue: MessageQueue;
  readonly upstream: Upstream;
  readonly watch: Watch;
  /** Events that were posted, for them to come again. */
  readonly posted: Posted[] = [];
  readonly ports: Ports;
  /** A failover brought an old key back: whoever relied on it must live until its verify is through. */
  rolledBack = false;

  readonly #mirror: Mirror | undefined;

  /** `clock` is the time without what passes in the history; absent: it stands still. */
  constructor(given: { startAt: number; clock?: () => number; mirror?: (memory: Ports, world: World) => Mirror }) {
    const { clock = () => given.startAt } = given;
    const now = () => clock() + this.#passed;
    this.now = now;
    this.redis = new MemoryRedis(now);
    this.postgres = new MemoryPostgres(now, () => this.newId(), SECRET);
    this.queue = new MessageQueue(now);
    this.upstream = new Upstream(now);
    this.watch = new Watch(this.postgres, this.upstream, now);
    for (const accountId of ACCOUNTS) this.postgres.addAccount(accountId, CONNECTION, USER);
    const memory = { store: this.postgres.store(), scripts: this.redis.runner() };
    this.#mirror = given.mirror?.(memory, this);
    this.ports = this.#mirror?.ports ?? memory;
  }

  readonly now: () => number;
  async pass(ms: number): Promise<void> {
    this.#passed += ms;
    await this.#mirror?.pass(ms);
  }
  newId(): string {
    this.#ids += 1;
    return `00000000-0000-4000-8000-${String(this.#ids).padStart(12, "0")}`;
  }
  /** Work that waits for its next call. */
  get busy(): Fiber[] {
    return this.fibers.filter(({ next }) => next !== undefined);
  }

  /** A new event: `workTypes` of `accounts` have changed, and it tells of that. */
  post(fields: WebhookFields, workTypes: readonly WorkType[], accounts: readonly string[]): Promise<Fiber> {
    const event = { ...fields, userId: USER, brokerageAuthorizationId: CONNECTION, eventTimestamp: this.#iso() };
    const changed = accounts.flatMap((accountId) => workTypes.map((workType) => ({ workType, accountId })));
    const posted = { event, told: this.#versions(changed) };
    this.posted.push(posted);
    return this.repeat(posted);
  }

  /** An event as SnapTrade sends it, for the first time or again: the same bytes. */
  repeat({ event, told }: Posted): Promise<Fiber> {
    const now = this.#versions(told);
    const body = JSON.stringify({ ...event, webhookSecret: WEBHOOK_SECRET });
    const request = new Request(`${APP_URL}/api/snaptrade/webhook`, { method: "POST", body });
    return this.start("event", async (service, fiber) => {
      const after: (() => Promise<void>)[] = [];
      const response = await receiveWebhook(service, request, (task) => void after.push(task));
      const { outcome } = await response.json();
      // A duplicate promises what its first time did, a fresh acceptance everything until now.
      const promised = { accepted: now, coalesced: now, duplicate: told }[String(outcome)] ?? [];
      for (const key of promised) this.watch.promised.push({ ...key, webhookId: event.webhookId });
      fiber.name = "verify";
      for (const task of after) await task();
    });
  }

  async deliver(entry: Waiting): Promise<Fiber> {
    this.queue.take(entry);
    const job = parseMessage(JSON.stringify(entry.message.body));
    if (job === null) throw new Error(`A message that is no job's: ${JSON.stringify(entry.message)}`);
    const again = () => this.queue.again(entry) || void this.giveUp(entry);
    return this.start(
      "delivery",
      async (service) => {
        const outcome = await runJob(service, { job, retried: entry.retried, messageId: "msg" }).catch(
          (error: unknown) => {
            if (error instanceof StoreError && error.away) return "postgres_away" as const;
            throw error;
          },
        );
        if (statusOf(outcome) !== 200) again();
      },
      again,
    );
  }

  async giveUp({ message }: Waiting): Promise<Fiber> {
    const sourceBody = Buffer.from(JSON.stringify(message.body)).toString("base64");
    const body = JSON.stringify({ sourceBody, status: 503 });
    const url = `${APP_URL}${FAILURE_PATH}`;
    const signature = await signer.sign({ url, body: Buffer.from(body), key: "current", skewSeconds: 0 });
    const request = new Request(url, { method: "POST", body, headers: { "upstash-signature": signature } });
    return this.start("callback", async (service) => void (await receiveFailedMessage(service, request)));
  }

  tick(): Promise<Fiber> {
    return this.start("tick", async (service) => void (await reconcile(service)));
  }
  replay(): Promise<Fiber> {
    const dead = this.postgres.jobs
      .filter(({ status }) => status === "dead")
      .map((job) => ({ ...job, jobId: job.id, calls: 3 }));
    return this.start("replay", async (service) => void (await replayDead(service, dead)));
  }
  bulk(key: SyncKey): Promise<Fiber> {
    return this.start("bulk", async (service) => {
      const bulk = await acceptBulk(service, "sweep", [{ ...key, calls: 3 }]);
      if (!isAway(bulk)) await publishJobs(service, bulk.publish, bulk.waits);
    });
  }

  async flush(): Promise<void> {
    this.redis.flush();
    this.watch.redisForgot();
    await this.#mirror?.flush();
  }
  async failover(key: SyncKey): Promise<void> {
    this.rolledBack = true;
    const queued = keys.queued({ settings: GUARD_SETTINGS, scripts: this.ports.scripts }, key);
    await this.#mirror?.put(queued, this.redis.undo(queued));
  }
  isAtRest(): boolean {
    const isOpen = this.postgres.jobs.some(({ status }) => status === "queued" || status === "running");
    return !isOpen && this.queue.waiting.length === 0;
  }
  /** Every open job waits for its time (a failure's delay): nothing has to happen until then. */
  restsUntil(): number {
    const open = this.postgres.jobs.filter(({ status }) => status === "queued" || status === "running");
    const dueAt = open.map((job) => (job.status === "queued" ? job.dueAt : 0));
    return open.length === 0 ? 0 : Math.min(...dueAt);
  }
  /** What Redis knows of claims and locks. */
  claims(): string[] {
    return this.redis.keys().filter((key) => /^snaptrade:(webhook|account:(queued|lock)):/.test(key));
  }
  async expire(key: string): Promise<void> {
    this.redis.delete(key);
    await this.#mirror?.put(key, null);
  }

  async start(
    name: string,
    work: (service: Service, fiber: Fiber) => Promise<void>,
    onCrash?: () => void,
  ): Promise<Fiber> {
    const fiber = new Fiber(name, onCrash);
    this.fibers.push(fiber);
    await fiber.begin(async () => {
      try {
        await work(inTurns(fiber, this, this.#logger), fiber);
      } catch (error) {
        // A crash of the work itself is never expected; an answer that did not come is.
        if (!(error instanceof StoreError)) this.watch.faults.push(`${name} threw ${String(error)}`);
      }
    });
    return fiber;
  }

  #versions(keys: SyncKey[]): Told[] {
    return keys.map((key) => ({ ...key, version: this.upstream.version(key.workType, key.accountId) }));
  }
  #iso(): string {
    return new Date(this.now()).toISOString();
  }

  readonly #logger = quietLogger((error) => this.watch.faults.push(`an unexpected error: ${error.stack}`));
}

const STATUSES = new Map<RunOutcome, number>();
/** What QStash is told. Asked once for each: an answer costs more than most of a run in memory. */
function statusOf(outcome: RunOutcome): number {
  const status = STATUSES.get(outcome) ?? workerAnswer(outcome).status;
  STATUSES.set(outcome, status);
  return status;
}
