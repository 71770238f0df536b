import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { z } from "zod";
import type { WorkType } from "@/lib/domain";
import { effectOf, isEventType } from "@/lib/webhook/event-effects";

/** One post of a webhook; a redelivery is another one with the same body. */
export type StormPost = {
  /** Milliseconds after the beginning of the storm. */
  atMs: number;
  body: string;
  signature: string;
  /** What changes upstream before this post: null for a redelivery, and for an event that reads no single account. */
  change: { accountId: string; workTypes: readonly WorkType[] } | null;
};

const line = z.object({ atMs: z.number().nonnegative(), body: z.string(), signature: z.string() });
const event = z.object({
  webhookId: z.string().optional(),
  webookId: z.string().optional(),
  eventType: z.string(),
  accountId: z.string().optional(),
});

/** A recorded storm: JSON lines `{atMs, body, signature}`, gzipped, in the order of `atMs`. */
export async function readStorm(file: string): Promise<StormPost[]> {
  const bytes = await readFile(file);
  const text = (await promisify(gunzip)(bytes)).toString("utf8");
  const posts = text
    .split("\n")
    .filter((entry) => entry.trim() !== "")
    .map((entry, i) => {
      const parsed = line.safeParse(JSON.parse(entry));
      if (!parsed.success) throw new Error(`${file}, line ${i + 1}: expected {atMs, body, signature}`);
      return parsed.data;
    });
  return withChanges(posts.sort((a, b) => a.atMs - b.atMs));
}

/** Marks the first copy of each account event. */
export function withChanges(posts: Omit<StormPost, "change">[]): StormPost[] {
  const seen = new Set<string>();
  return posts.map((post) => {
    const { webhookId, webookId, eventType, accountId } = event.parse(JSON.parse(post.body));
    const id = webhookId ?? webookId ?? post.body;
    const isFirst = !seen.has(id);
    seen.add(id);
    const effect = isEventType(eventType) ? effectOf({ eventType }) : null;
    const change = isFirst && accountId !== undefined && effect?.kind === "account";
    return { ...post, change: change ? { accountId, workTypes: effect.workTypes } : null };
  });
}

/** How many accounts a simulator must have for this storm: one above the highest `acct-0123`. */
export function accountsOf(posts: readonly StormPost[], least: number): number {
  const numbers = posts.map(({ change }) => Number(/^acct-(\d{4})$/.exec(change?.accountId ?? "")?.[1] ?? -1));
  return numbers.reduce((most, number) => Math.max(most, number + 1), least);
}
