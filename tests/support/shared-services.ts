import { z } from "zod";
import { json, listen } from "@/sandbox/listen";
import { applyMigrations } from "@/sandbox/postgres/apply-migrations";
import { OWNER, type Postgres, startPostgres } from "@/sandbox/postgres/start-postgres";
import { type RedisServer, startRedis } from "@/sandbox/redis/start-redis";
import { installSupabaseBase } from "@/sandbox/supabase/install-base";

const TEMPLATE = "migrated_template";

export type SharedServices = { url: string; close(): Promise<void> };

const postgresAnswer = z.object({ adminUrl: z.string(), owner: z.string(), template: z.string() });
/** `redisUrl` null: this machine has no Redis. `database`: a logical one that nobody else was given. */
const redisAnswer = z.object({ redisUrl: z.string().nullable(), database: z.number() });

/**
 * One Postgres (with a migrated template database) and one Redis for a whole test run, told to the test files over
 * HTTP. Each starts when it is first asked for: a run of unit tests pays for neither.
 */
export async function startSharedServices(): Promise<SharedServices> {
  let postgres: Promise<Postgres> | undefined;
  let redis: Promise<RedisServer> | undefined;
  let database = 0;

  const server = await listen(async ({ path }) => {
    if (path === "/postgres") {
      postgres ??= startMigratedPostgres();
      return json({ adminUrl: (await postgres).adminUrl, owner: OWNER, template: TEMPLATE });
    }
    redis ??= startRedis();
    const server = await redis;
    database += 1;
    return json({ redisUrl: server.kind === "server" ? server.url : null, database });
  });

  return {
    url: server.url,
    close: async () => {
      await server.close();
      await Promise.allSettled([postgres, redis].map(async (service) => (await service)?.close()));
    },
  };
}

export function askForPostgres(servicesUrl: string): Promise<z.infer<typeof postgresAnswer>> {
  return ask(`${servicesUrl}/postgres`, postgresAnswer);
}

export function askForRedis(servicesUrl: string): Promise<z.infer<typeof redisAnswer>> {
  return ask(`${servicesUrl}/redis`, redisAnswer);
}

async function ask<T>(url: string, schema: z.ZodType<T>): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`The test run's shared service did not start: ${await response.text()}`);
  return schema.parse(await response.json());
}

/** A template that somebody is connected to cannot be copied: all connections to it are closed here. */
async function startMigratedPostgres(): Promise<Postgres> {
  const postgres = await startPostgres();
  try {
    const url = await postgres.createDatabase(TEMPLATE);
    await installSupabaseBase(url);
    await applyMigrations(url);
    return postgres;
  } catch (error) {
    await postgres.close();
    throw error;
  }
}
