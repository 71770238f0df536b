import getPort from "get-port";
import { preparePostgresBinaries, SUPERUSER } from "@/sandbox/postgres/binaries";
import { persistentDataDir, temporaryDataDir } from "@/sandbox/postgres/data-dir";
import { createDatabase, dropDatabase, once, withDatabase } from "@/sandbox/postgres/databases";
import { startServerProcess } from "@/sandbox/server-process";

/** Who owns the databases and everything in them. */
export const OWNER = "postgres";

export type Postgres = {
  /** Database `postgres`, as role `postgres`: owner of everything, no superuser, as on Supabase. */
  url: string;
  /** The same database as superuser. For a running server that was given: its own URL. */
  adminUrl: string;
  port: number;
  /** Makes a database that belongs to role `postgres`, a copy of `template` if given, and returns its URL. */
  createDatabase(name: string, template?: string): Promise<string>;
  /** Drops a database, whoever is still connected; no error when there is none. */
  dropDatabase(name: string): Promise<void>;
  /** Ends the server and removes its data, unless a `dataDir` was given. A running server is left as it is. */
  close(): Promise<void>;
};

export type PostgresOptions = {
  /** Absent: a free one. */
  port?: number | undefined;
  /** Keeps the data there, from one start to the next. Absent: a temporary folder. */
  dataDir?: string | undefined;
  /** Uses this running server instead of starting one; its user must be allowed to create databases and roles. */
  databaseUrl?: string | undefined;
};

/**
 * Starts a real Postgres on 127.0.0.1 for development and tests: nothing is flushed to disk, everybody on this
 * machine is let in, up to 200 connections.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  if (options.databaseUrl !== undefined) return runningServer(options.databaseUrl);
  const port = options.port ?? (await getPort({ host: "127.0.0.1" }));
  const binaries = await preparePostgresBinaries();
  const data =
    options.dataDir === undefined
      ? await temporaryDataDir(binaries)
      : await persistentDataDir(binaries, options.dataDir);
  try {
    const server = await startServerProcess({
      name: "Postgres",
      command: binaries.postgres,
      args: ["-D", data.path, "-p", String(port), ...Object.entries(SETTINGS).flatMap(([k, v]) => ["-c", `${k}=${v}`])],
      readyLine: /ready to accept connections/,
      user: binaries.user,
    });
    const adminUrl = `postgres://${SUPERUSER}@127.0.0.1:${port}/postgres`;
    await createOwnerRole(adminUrl);
    return {
      ...handle(adminUrl, `postgres://${OWNER}:postgres@127.0.0.1:${port}/postgres`, OWNER),
      close: async () => {
        await server.stop("SIGINT"); // fast shutdown: connections are cut, the data directory is left consistent
        await data.remove();
      },
    };
  } catch (error) {
    await data.remove();
    throw error;
  }
}

const SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: 200,
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  wal_level: "minimal",
  max_wal_senders: 0,
  io_method: "sync",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "log", // the ready line and what is worse than an error; tests provoke errors by the hundred
  log_checkpoints: "off",
} as const;

/** Role `postgres` as Supabase has it: may make roles and databases and passes row-level security, no superuser. */
async function createOwnerRole(adminUrl: string): Promise<void> {
  await once(adminUrl, (admin) =>
    admin.unsafe(`
      do $$ begin
        if not exists (select from pg_roles where rolname = '${OWNER}') then
          create role ${OWNER} login createdb createrole bypassrls password 'postgres';
        end if;
      end $$;
      alter database postgres owner to ${OWNER};
    `),
  );
}

function runningServer(databaseUrl: string): Postgres {
  return { ...handle(databaseUrl, databaseUrl), close: async () => undefined };
}

function handle(adminUrl: string, url: string, owner?: string): Omit<Postgres, "close"> {
  return {
    url,
    adminUrl,
    port: Number(new URL(url).port || 5432),
    async createDatabase(name, template) {
      await createDatabase(adminUrl, { name, template, owner });
      return withDatabase(url, name);
    },
    dropDatabase: (name) => dropDatabase(adminUrl, name),
  };
}
