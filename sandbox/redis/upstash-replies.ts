import { isRedisError, type Reply } from "@/sandbox/redis/redis-backend";

export type Encoding = "base64" | "text";
type Json = string | number | null | Json[];
export type Item = { result: Json } | { error: string };

/** One reply as Upstash's REST API writes it (Upstash docs, redis/features/restapi). */
export function toItem(reply: Reply, encoding: Encoding): Item {
  if (isRedisError(reply)) return { error: reply.error };
  const isOk = Buffer.isBuffer(reply) ? reply.equals(OK) : reply === "OK";
  return { result: isOk ? "OK" : toJson(reply, encoding) }; // the client leaves a whole reply of `OK` undecoded
}

const OK = Buffer.from("OK");

function toJson(reply: Reply, encoding: Encoding): Json {
  if (reply === null || typeof reply === "number") return reply;
  if (Array.isArray(reply)) return reply.map((item) => toJson(item, encoding));
  if (isRedisError(reply)) return reply.error; // inside an array: only a Lua table can hold one
  return Buffer.from(reply).toString(encoding === "base64" ? "base64" : "utf8");
}
