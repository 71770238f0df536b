import pino from "pino";
import { createScrub } from "@/lib/scrub";

export type LogFields = Record<string, unknown>;

/** Fields first, then the message: as pino has it. Errors go under the field `error`. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger whose every line carries these fields too. */
  child(fields: LogFields): Logger;
}

export type LoggerOptions = {
  /** Values that must never appear, whatever carries them: `env.secrets`. */
  secrets: readonly string[];
  level?: "debug" | "info" | "warn" | "error" | "silent";
  /** Where lines go; standard output by default. */
  destination?: { write(line: string): void };
};

const MAX_TEXT = 1000;
/** Values a line, nested ones included: an error of an HTTP client can hang on its whole connection pool. */
const MAX_VALUES = 200;

/** Names whose values are secret wherever they stand. */
const SECRET_NAME = /secret|token|password|authorization|signature|cookie|consumerkey|apikey|signingkey|ciphertext/i;

/** JSON leaves these unescaped; a terminal or a line reader may act on them (DEL, C1 controls, line separators). */
const UNSAFE = /[\u007f-\u009f\u2028\u2029]/g;

/**
 * Writes one JSON line a call. No line carries a secret (I10), and no text can end a line, forge a second one or move a
 * terminal's cursor: JSON escapes CR, LF and ESC, and the rest is escaped here. Texts are cut at 1000 characters,
 * lines at 200 values.
 */
export function createLogger(options: LoggerOptions): Logger {
  const tidy = createTidy(options.secrets);
  const settings: pino.LoggerOptions = {
    level: options.level ?? "info",
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  return wrap(options.destination ? pino(settings, options.destination) : pino(settings), tidy);
}

function wrap(logger: pino.Logger, tidy: Tidy): Logger {
  return {
    debug: (fields, message) => logger.debug(tidy.fields(fields), tidy.text(message)),
    info: (fields, message) => logger.info(tidy.fields(fields), tidy.text(message)),
    warn: (fields, message) => logger.warn(tidy.fields(fields), tidy.text(message)),
    error: (fields, message) => logger.error(tidy.fields(fields), tidy.text(message)),
    child: (fields) => wrap(logger.child(tidy.fields(fields)), tidy),
  };
}

type Tidy = { text(text: string): string; fields(fields: LogFields): LogFields };

function createTidy(secrets: readonly string[]): Tidy {
  const scrub = createScrub(secrets);

  // Scrubbed before it is cut: half a secret is one too.
  function text(given: string): string {
    const safe = scrub(given).replace(UNSAFE, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    return safe.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT)}... (${safe.length} characters)` : safe;
  }

  function fields(given: LogFields): LogFields {
    let left = MAX_VALUES;
    return object(given);

    function object(members: object): LogFields {
      return Object.fromEntries(
        Object.entries(members)
          .slice(0, left)
          .map(([name, value]) => [text(name), SECRET_NAME.test(name) ? "[redacted]" : tidied(value)]),
      );
    }

    function tidied(value: unknown): unknown {
      left -= 1;
      if (left < 0) return "[cut]";
      if (typeof value === "string") return text(value);
      if (typeof value === "bigint") return String(value);
      if (typeof value !== "object" || value === null) return value;
      if (value instanceof Error) return object({ name: value.name, ...ownValues(value) });
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
      if (value instanceof URL) return text(value.href);
      if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
      if (Array.isArray(value)) return value.slice(0, left).map(tidied);
      return object(value);
    }
  }

  return { text, fields };
}

/** `message`, `stack` and `cause` of an error are own properties, but not enumerable ones. */
function ownValues(error: Error): Record<string, unknown> {
  return Object.fromEntries(Object.entries(Object.getOwnPropertyDescriptors(error)).map(([k, d]) => [k, d.value]));
}
