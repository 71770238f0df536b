import { randomUUID } from "node:crypto";
import { Hono } from "hono";
import { z } from "zod";
import { createFaults, type Fault, faultRoutes } from "@/sandbox/faults";
import { type Connection, listen } from "@/sandbox/listen";
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

  async function single(body: unknown, encoding: Encoding, oom: boolean): Promise<Response> {
    const command = commandSchema.parse(body);
    count(command);
    const refused = refusal(command, oom);
    const reply = refused === undefined ? await redis.call(translate(command)) : { error: refused };
    return Response.json(toItem(reply, encoding), { status: isRedisError(reply) ? 400 : 200 });
  }

  /** Refused commands fail alone; the others are sent in order, in one go. */
  async function pipeline(body: unknown, encoding: Encoding, oom: boolean): Promise<Response> {
    const commands = commandsSchema.parse(body);
    commands.forEach(count);
    const refused = commands.map((command) => refusal(command, oom));
    const allowed = commands.filter((_, i) => refused[i] === undefined);
    const replies = await redis.pipeline(allowed.map(translate));
    const all: Reply[] = refused.map((error) => (error === undefined ? (replies.shift() ?? null) : { error }));
    return Response.json(all.map((reply) => toItem(reply, encoding)));
  }

  async function transaction(body: unknown, encoding: Encoding, oom: boolean): Promise<Response> {
    const commands = commandsSchema.parse(body);
    commands.forEach(count);
    const refused = commands.map((command) => refusal(command, oom)).find((error) => error !== undefined);
    const replies =
      refused === undefined ? await redis.transaction(commands.map(translate)) : { error: `EXECABORT ${refused}` };
    if (!Array.isArray(replies)) return Response.json(replies, { status: 400 });
    return Response.json(replies.map((reply) => toItem(reply, encoding)));
  }

  const routes: Record<string, typeof single> = { "/": single, "/pipeline": pipeline, "/multi-exec": transaction };

  const api = new Hono<{ Bindings: Connection }>()
    .get("/_sim/state", (c) => {
      const commands = [...byCommand.values()].reduce((sum, n) => sum + n, 0);
      return c.json({ requests, commands, byCommand: Object.fromEntries(byCommand) });
    })
    .route("/_sim", faultRoutes(faults))
    .post("/_sim/flush", async (c) => {
      await redis.flush();
      return c.json({ ok: true });
    })
    .post("*", (c) => {
      requests += 1;
      return faults.play(c.env, async ({ oom }) => {
        if (c.req.header("authorization") !== `Bearer ${token}`) {
          return c.json({ error: "WRONGPASS invalid or missing auth token" }, 401);
        }
        const route = routes[c.req.path];
        if (route === undefined) return c.json({ error: `ERR unknown path '${c.req.path}'` }, 404);
        const encoding = c.req.header("upstash-encoding") === "base64" ? "base64" : "text";
        return route(await c.req.json(), encoding, oom);
      });
    })
    .onError((error, c) => {
      if (!(error instanceof z.ZodError || error instanceof SyntaxError)) throw error;
      return c.json({ error: "ERR failed to parse the request: a JSON array of words is expected" }, 400);
    });
  const server = await listen(api.fetch, options.port);

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

const wordSchema = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const commandSchema = z.tuple([wordSchema], wordSchema);
const commandsSchema = z.array(commandSchema).nonempty();
