import { readFileSync } from "node:fs";
import path from "node:path";
import { parseEnv as parseDotenv } from "node:util";
import { type Composed, createService, guardContext } from "@/lib/composition";
import { type EnvSource, parseEnv } from "@/lib/env";
import { createLogger } from "@/lib/log";
import { createGuards } from "@/lib/snaptrade-webhook-guards";

/** The process's environment, over `.env.local`, over `.env`: the order that Next.js has for the service itself. */
export function readEnvironment(directory: string = process.cwd()): EnvSource {
  return { ...readDotenv(directory, ".env"), ...readDotenv(directory, ".env.local"), ...process.env };
}

/** Nobody waits behind a command, and an operator may sit far from Redis: no need for a request path's one second. */
const REDIS_TIMEOUT_MS = 10_000;

/** The service for a command: its log lines go to standard error, since standard output is the command's answer. */
export function composeForCommand(environment: EnvSource): Composed {
  const parsed = parseEnv(environment);
  if (parsed.kind === "bad") return parsed;
  const { env, warnings } = parsed;
  const logger = createLogger({ secrets: env.secrets, level: "warn", destination: process.stderr });
  const guards = createGuards(guardContext(env, logger, REDIS_TIMEOUT_MS));
  return { kind: "ok", service: createService(env, { logger, guards }), warnings };
}

function readDotenv(directory: string, name: string): EnvSource {
  try {
    return parseDotenv(readFileSync(path.join(directory, name), "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw error;
  }
}
