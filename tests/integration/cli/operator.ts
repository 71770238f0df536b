import type { Tools } from "@/lib/cli/report";
import { guardContext } from "@/lib/composition";
import type { Service } from "@/lib/service";
import { createGuards } from "@/lib/snaptrade-webhook-guards";

/** The service as a command composes it: patient with Redis, however busy this machine is. */
export function patient(service: Service): Service {
  return { ...service, guards: createGuards(guardContext(service.env, service.logger, 20_000)) };
}

export type Operator = Tools & {
  /** What the command said on the way. */
  notes: string[];
  /** How long it asked to wait, each time. */
  waits: number[];
};

/** Somebody at a terminal that nobody looks at: waiting takes no time, `onWait` is what happens meanwhile. */
export function operator(service: Service, onWait: (ms: number) => void | Promise<void> = () => {}): Operator {
  const notes: string[] = [];
  const waits: number[] = [];
  return {
    service,
    notes,
    waits,
    terminal: {
      note: (line) => void notes.push(line),
      progress: () => ({ advance() {}, stop() {} }),
      async wait(ms) {
        waits.push(ms);
        await onWait(ms);
      },
    },
  };
}
