import { randomUUID } from "node:crypto";
import { controlFaults, createFaults, type Fault } from "@/sandbox/faults";
import { type HttpCall, type HttpReply, json, listen } from "@/sandbox/listen";
import { createMockRedis } from "@/sandbox/redis/mock-backend";
import { type CommandWords, connectRedis, isRedisError, type Reply } from "@/sandbox/redis/redis-backend";
import { createCommandTranslator, refusal } from "@/sandbox/redis/upstash-commands";
import { type Encoding, toItem } from "@/sandbox/redis/upstash-replies";

export type RedisFrontOptions = {
  /** Absent: a free one. */
  port?: number | undefined;
  /** Absent: a mock in memory, of this front alone. */
  redisUrl?: string | undefined;
  /** A logical database of that Redis; default 0. */
  database?: number | undefined;
  token?: string | undefined;
};

export type RedisFront = {
  url: string;
  token: string;
  /** Requests so far, those to `/_sim` not counted. */
  requests(): number;
  /** Lets the next requests go wrong. */
  fault(fault: Fault): void;
  clearFaults(): void;
  /** Empties the database. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

/**
 * Upstash's REST API in front of a Redis, as far as `@upstash/redis` uses it: `POST /`, `/pipeline`, `/multi-exec`.
 * `GET /_sim/state` answers `{requests, commands, byCommand}`; `POST /_sim/faults` takes a fault, `DELETE` clears them;
 * `POST /_sim/flush` empties the database.
 */
export async function startRedisFront(options: RedisFrontOptions = {}): Promise<RedisFront> {
  const { redisUrl, database, token = "sandbox-redis-token" } = options;
  const redis = redisUrl === undefined ? createMockRedis(randomUUID()) : await connectRedis(redisUrl, database);
  const faults = createFaults();
  const translate = createCommandTranslator();
  const byCommand = new Map<string, number>();
  let requests = 0;

  const count = ([word]: CommandWords) => {
    byCommand.set(word.toUpperCase(), (byCommand.get(word.toUpperCase()) ?? 0) + 1);
  };

  const single: Route = async (body, encoding, oom) => {
    const command = toCommand(body);
    if (command === undefined) return UNREADABLE;
    count(command);
    const refused = refusal(command, oom);
    const reply = refused === undefined ? await redis.call(translate(command)) : { error: refused };
    return json(toItem(reply, encoding), isRedisError(reply) ? 400 : 200);
  };

  /** Refused commands fail alone; the others are sent in order, in one go. */
  const pipeline: Route = async (body, encoding, oom) => {
    const commands = toCommands(body);
    if (commands === undefined) return UNREADABLE;
    commands.forEach(count);
    const refused = commands.map((command) => refusal(command, oom));
    const allowed = commands.filter((_, i) => refused[i] === undefined);
    const replies = await redis.pipeline(allowed.map(translate));
    const all: Reply[] = refused.map((error) => (error === undefined ? (replies.shift() ?? null) : { error }));
    return json(all.map((reply) => toItem(reply, encoding)));
  };

  const transaction: Route = async (body, encoding, oom) => {
    const commands = toCommands(body);
    if (commands === undefined) return UNREADABLE;
    commands.forEach(count);
    const refused = commands.map((command) => refusal(command, oom)).find((error) => error !== undefined);
    if (refused !== undefined) return json({ error: `EXECABORT ${refused}` }, 400);
    const replies = await redis.transaction(commands.map(translate));
    if (!Array.isArray(replies)) return json(replies, 400);
    return json(replies.map((reply) => toItem(reply, encoding)));
  };

  const routes: Record<string, Route> = { "/": single, "/pipeline": pipeline, "/multi-exec": transaction };

  async function control(call: HttpCall): Promise<HttpReply> {
    if (call.path === "/_sim/state") {
      const commands = [...byCommand.values()].reduce((sum, n) => sum + n, 0);
      return json({ requests, commands, byCommand: Object.fromEntries(byCommand) });
    }
    if (call.path === "/_sim/flush") {
      await redis.flush();
      return json({ ok: true });
    }
    return controlFaults(faults, call) ?? json({ error: `No control ${call.path}` }, 404);
  }

  const server = await listen(async (call) => {
    if (call.path.startsWith("/_sim/")) return control(call);
    requests += 1;
    return faults.play(async ({ oom }) => {
      if (call.headers.authorization !== `Bearer ${token}`) {
        return json({ error: "WRONGPASS invalid or missing auth token" }, 401);
      }
      const route = call.method === "POST" ? routes[call.path] : undefined;
      if (route === undefined) return json({ error: `ERR no such path: ${call.method} ${call.path}` }, 404);
      return route(call.body, call.headers["upstash-encoding"] === "base64" ? "base64" : "text", oom);
    });
  }, options.port);

  return {
    url: server.url,
    token,
    requests: () => requests,
    fault: faults.add,
    clearFaults: faults.clear,
    flush: redis.flush,
    close: async () => {
      await server.close();
      await redis.close();
    },
  };
}

type Route = (body: Buffer, encoding: Encoding, oom: boolean) => Promise<HttpReply>;

const UNREADABLE = json({ error: "ERR failed to parse the request: a JSON array of words is expected" }, 400);

function toCommand(body: Buffer): CommandWords | undefined {
  return wordsOf(parseArray(body) ?? []);
}

function toCommands(body: Buffer): CommandWords[] | undefined {
  const commands = parseArray(body)?.map((item) => (Array.isArray(item) ? wordsOf(item) : undefined));
  const readable = commands?.filter((command) => command !== undefined);
  return readable?.length === 0 || readable?.length !== commands?.length ? undefined : readable;
}

/** By hand and not by zod: it is the hot path, and a fifth of the whole. */
function wordsOf(items: unknown[]): CommandWords | undefined {
  const [name, ...args] = items.map((item) =>
    /^(string|number|boolean)$/.test(typeof item) ? String(item) : undefined,
  );
  if (name === undefined || args.includes(undefined)) return undefined;
  return [name, ...args.filter((arg) => arg !== undefined)];
}

function parseArray(body: Buffer): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
