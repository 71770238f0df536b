import RedisMock from "ioredis-mock";
import {
  type CommandWords,
  type RedisBackend,
  type RedisError,
  type Reply,
  toError,
} from "@/sandbox/redis/redis-backend";

/** Commands whose option words the mock only knows in upper case, and the position of the first such word. */
const OPTIONS_FROM: Record<string, number> = { set: 3, expire: 3, pexpire: 3, zadd: 2, zrange: 4, scan: 2 };

/**
 * A Redis in memory, for a machine without one: enough to try the service. No cjson, no WRONGTYPE, text only.
 * `name` keeps the data of two mocks apart. One command after the other, so that a transaction is one.
 */
export function createMockRedis(name: string): RedisBackend {
  const mock = new RedisMock({ host: name });
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };

  async function run([word, ...args]: CommandWords): Promise<Reply> {
    const command = word.toLowerCase();
    const method: unknown = Reflect.get(mock, command);
    if (typeof method !== "function") return { error: `ERR unknown command '${word}', with args beginning with: ` };
    const from = OPTIONS_FROM[command];
    const words = from === undefined ? args : args.map((arg, i) => (i + 1 >= from ? arg.toUpperCase() : arg));
    try {
      return plain(await Reflect.apply(method, mock, words));
    } catch (error) {
      return toError(error);
    }
  }

  async function runAll(commands: CommandWords[]): Promise<Reply[]> {
    const replies: Reply[] = [];
    for (const command of commands) replies.push(await run(command));
    return replies;
  }

  return {
    call: (command) => inTurn(() => run(command)),
    pipeline: (commands) => inTurn(() => runAll(commands)),
    transaction: (commands): Promise<Reply[] | RedisError> => inTurn(() => runAll(commands)),
    flush: async () => {
      await mock.flushdb();
    },
    close: async () => mock.disconnect(),
  };
}

/** The mock answers hashes as objects and Lua's booleans as they are. */
function plain(value: unknown): Reply {
  if (typeof value === "string" || typeof value === "number" || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map(plain);
  if (value === true) return 1;
  if (value === null || value === undefined || value === false) return null;
  return Object.entries(value).flatMap(([field, item]) => [field, plain(item)]);
}
