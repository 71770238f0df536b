import postgres from "postgres";
import { type HttpReply, json } from "@/sandbox/listen";

export type DatabaseError = {
  code: string;
  message: string;
  detail?: string | undefined;
  hint?: string | undefined;
};

/** A database error as PostgREST answers it: its SQLSTATE decides the status, the body tells what Postgres said. */
export function postgrestError(error: DatabaseError, authenticated: boolean): HttpReply {
  const { code, message, detail, hint } = error;
  const body = { code, details: detail ?? null, hint: hint ?? null, message };
  return json(body, statusOf(error, authenticated));
}

/** An error on the way to the database (PostgREST docs, errors, group 0): refused, cut, no free connection. */
export function connectionError(error: unknown): HttpReply {
  const details = error instanceof Error ? error.message : String(error);
  const message = "Database client error. Retrying the connection.";
  return json({ code: "PGRST001", details, hint: null, message }, 503);
}

/** The driver's own codes (`CONNECTION_CLOSED` ...) and those of the socket (`ECONNREFUSED` ...). */
export function isConnectionError(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^(CONNECT|ECONN|EPIPE|ENOTFOUND)/.test(String(error.code));
}

export function isDatabaseError(error: unknown): error is DatabaseError {
  return error instanceof postgres.PostgresError && /^[0-9A-Z]{5}$/.test(error.code);
}

/** PostgREST docs, errors, "HTTP Status Codes"; the cases beyond the table are those of its source, Error.hs. */
function statusOf({ code, message }: DatabaseError, authenticated: boolean): number {
  switch (code) {
    case "23503":
    case "23505":
      return 409;
    case "25006":
      return 405;
    case "21000":
      return message.endsWith("requires a WHERE clause") ? 400 : 500;
    case "22023":
      return /^role .* does not exist$/.test(message) ? 401 : 400;
    case "42883":
    case "42P01":
      return 404;
    case "42P17":
    case "53400":
      return 500;
    case "42501":
      return authenticated ? 403 : 401;
    case "57P01":
      return 503;
    case "P0001":
      return 400;
  }
  if (code.startsWith("PT")) return Number.parseInt(code.slice(2), 10) || 500; // raise sqlstate 'PT409'
  return STATUS_BY_CLASS[code.slice(0, 2)] ?? 400;
}

const STATUS_BY_CLASS: Record<string, number> = {
  "08": 503,
  "09": 500,
  "0L": 403,
  "0P": 403,
  "25": 500,
  "28": 403,
  "2D": 500,
  "38": 500,
  "39": 500,
  "3B": 500,
  "40": 500,
  "53": 503,
  "54": 500,
  "55": 500,
  "57": 500,
  "58": 500,
  F0: 500,
  HV: 500,
  P0: 500,
  XX: 500,
};
