import { writeWire } from "@/sandbox/snaptrade/wire";

/** An answer, complete as text before it is sent: late answers show the state of their arrival. */
export type Reply = {
  status: number;
  headers: Record<string, string>;
  body: string;
  delayMs?: number;
  /** Ends the connection instead: before any byte, or after half of the body. */
  drop?: "whole" | "half";
  /** Told once, when the answer has been written; 0 when it was not written whole. */
  onAnswered?: (status: number) => void;
};

export function jsonReply(status: number, body: unknown): Reply {
  return { status, headers: { "Content-Type": "application/json" }, body: writeWire(body) };
}
