import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type HttpCall, type HttpReply, json } from "@/sandbox/listen";

/** How the next requests of a simulated service go wrong. */
const faultSchema = z.strictObject({
  /** Milliseconds before anything else happens. Alone: the usual answer, late. */
  delayMs: z.number().nonnegative().optional(),
  /** The request is carried out, then its connection is cut. A number stands for `true` with so many `times`. */
  dropReply: z.union([z.boolean(), z.int().positive()]).optional(),
  /** Answers so, without carrying the request out. */
  status: z.int().min(200).max(599).optional(),
  body: z.unknown().optional(),
  /** Cuts each connection before the request is carried out; `false` ends all outages. */
  outage: z.boolean().optional(),
  /** Redis only: writing commands are refused for want of memory; `false` ends it. */
  oom: z.boolean().optional(),
  /** Requests to let pass first; default 0. */
  after: z.int().nonnegative().optional(),
  /** Requests to hit; default: until cleared for `outage` and `oom`, else 1. */
  times: z.int().positive().optional(),
});
export type Fault = z.infer<typeof faultSchema>;

export type Faults = {
  add(fault: Fault): void;
  clear(): void;
  /**
   * Plays the faults that hit this request around `carryOut`, which is told whether memory is out.
   * The oldest fault that hits wins; the others wait for the next request.
   */
  play(carryOut: (fault: { oom: boolean }) => Promise<HttpReply>): Promise<HttpReply>;
};

export function createFaults(): Faults {
  let pending: { fault: Fault; after: number; times: number }[] = [];

  const take = (): Fault => {
    const due = pending.find((entry) => entry.after === 0);
    for (const entry of pending) entry.after = Math.max(0, entry.after - 1);
    if (due === undefined) return {};
    due.times -= 1;
    pending = pending.filter((entry) => entry.times > 0);
    return due.fault;
  };

  return {
    add(fault) {
      if (fault.outage === false) pending = pending.filter((entry) => !entry.fault.outage);
      if (fault.oom === false) pending = pending.filter((entry) => !entry.fault.oom);
      const { delayMs, dropReply, status, outage, oom } = fault;
      if (!(delayMs || dropReply || status || outage || oom)) return;
      const lasting = outage || oom ? Number.POSITIVE_INFINITY : 1;
      const times = fault.times ?? (typeof dropReply === "number" ? dropReply : lasting);
      pending.push({ fault, after: fault.after ?? 0, times });
    },
    clear() {
      pending = [];
    },
    async play(carryOut) {
      const { delayMs, dropReply, status, body, outage, oom } = take();
      if (delayMs) await sleep(delayMs);
      if (outage) return "cut";
      if (status) return answer(status, body);
      const reply = await carryOut({ oom: oom === true });
      return dropReply ? "cut" : reply;
    },
  };
}

/** Control over HTTP: `POST /_sim/faults` adds one, `DELETE` clears all. Undefined: a call of another kind. */
export function controlFaults(faults: Faults, { method, path, body }: HttpCall): HttpReply | undefined {
  if (path !== "/_sim/faults") return undefined;
  if (method === "DELETE") {
    faults.clear();
    return json({ ok: true });
  }
  const fault = faultSchema.safeParse(parseJson(body));
  if (!fault.success) return json({ error: z.prettifyError(fault.error) }, 400);
  faults.add(fault.data);
  return json({ ok: true });
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function answer(status: number, body: unknown): HttpReply {
  return typeof body === "string" ? { status, body } : json(body ?? {}, status);
}
