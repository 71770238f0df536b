import { Redis, type RedisOptions } from "ioredis";

/** What Redis says: RESP2, with strings as bytes. */
export type Reply = Buffer | string | number | null | Reply[] | RedisError;
export type RedisError = { error: string };

/** One command, its name first. */
export type CommandWords = [string, ...string[]];

export type RedisBackend = {
  call(command: CommandWords): Promise<Reply>;
  /** In order, not atomic; one reply a command, errors among them. */
  pipeline(commands: CommandWords[]): Promise<Reply[]>;
  /** MULTI ... EXEC; the error of EXEC itself when Redis refuses the transaction as a whole. */
  transaction(commands: CommandWords[]): Promise<Reply[] | RedisError>;
  flush(): Promise<void>;
  close(): Promise<void>;
};

export function isRedisError(reply: Reply): reply is RedisError {
  return reply !== null && typeof reply === "object" && !Array.isArray(reply) && !Buffer.isBuffer(reply);
}

/**
 * A real Redis: one connection for everything, which pipelines by itself, and one for transactions.
 * `database` is a logical one of the server.
 */
export async function connectRedis(url: string, database?: number): Promise<RedisBackend> {
  const options: RedisOptions = {
    ...(database === undefined ? {} : { db: database }),
    lazyConnect: true,
    maxRetriesPerRequest: 1,
    showFriendlyErrorStack: false,
  };
  const client = new Redis(url, options);
  const transactions = new Redis(url, options);
  for (const connection of [client, transactions]) connection.on("error", () => undefined); // each command reports
  await Promise.all([client.connect(), transactions.connect()]);
  return {
    call: (command) => client.callBuffer(...upperCased(command)).then(toReply, toError),
    pipeline: async (commands) => pairs(await queue(client.pipeline(), commands).exec()),
    transaction: async (commands) => {
      try {
        return pairs(await queue(transactions.multi(), commands).exec());
      } catch (error) {
        return toError(error);
      }
    },
    flush: async () => {
      await client.flushdb();
    },
    close: async () => {
      await Promise.all([client.quit(), transactions.quit()]);
    },
  };
}

type Queue = ReturnType<Redis["pipeline"]>;

function queue<Q extends Queue>(into: Q, commands: CommandWords[]): Q {
  for (const command of commands) into.callBuffer(...upperCased(command));
  return into;
}

/** ioredis reshapes the replies of commands that it knows (HGETALL), by their lower-case names. */
function upperCased([name, ...args]: CommandWords): CommandWords {
  return [name.toUpperCase(), ...args];
}

function pairs(results: [Error | null, unknown][] | null): Reply[] {
  return (results ?? []).map(([error, reply]) => (error === null ? toReply(reply) : toError(error)));
}

function toReply(value: unknown): Reply {
  if (value === null || typeof value === "string" || typeof value === "number" || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map(toReply);
  return toError(value);
}

export function toError(error: unknown): RedisError {
  return { error: error instanceof Error ? error.message : String(error) };
}
