import { z } from "zod";

export const faultsSchema = z.strictObject({
  /** Befalls publish, enqueue and batch; `times` of them, or all until the faults are changed. The first one set is used. */
  publish: z
    .strictObject({
      /** Answers so and stores nothing. */
      status: z.int().min(300).max(599).optional(),
      /** Never answers and stores nothing. */
      hang: z.boolean().optional(),
      /** Answers as if stored (and remembers the deduplication id), but the message is gone. */
      acknowledgeAndLose: z.boolean().optional(),
      /** Stores the message, then cuts the connection instead of answering. */
      storeAndDropAnswer: z.boolean().optional(),
      times: z.int().positive().optional(),
    })
    .optional(),
  deliver: z
    .strictObject({
      /** Each message comes twice, both copies as soon as flow control allows, with the same message id. */
      duplicate: z.boolean().optional(),
      signWithNextKey: z.boolean().optional(),
      /** Added to all times of the signature. */
      skewSeconds: z.number().optional(),
    })
    .optional(),
  /** The service is away: every API connection is cut, no delivery starts, stored messages stay. */
  outage: z.boolean().optional(),
  /** Publishes are taken as ever, but no delivery starts. */
  stall: z.boolean().optional(),
});

export type Faults = z.infer<typeof faultsSchema>;
export type PublishFault =
  | { kind: "status"; status: number }
  | { kind: "hang" }
  | { kind: "acknowledgeAndLose" }
  | { kind: "storeAndDropAnswer" };

/** The faults that are switched on. Each `set` replaces all of them; `{}` switches everything off. */
export class FaultBoard {
  #faults: Faults = {};
  #publishLeft = 0;

  constructor(private readonly onChange: () => void) {}

  set(faults: Faults): void {
    this.#faults = faults;
    this.#publishLeft = faults.publish?.times ?? Number.POSITIVE_INFINITY;
    this.onChange();
  }

  get current(): Faults {
    return this.#faults;
  }

  /** The fault for one publishing request, which uses up one of its `times`. */
  takePublishFault(): PublishFault | undefined {
    const { publish } = this.#faults;
    if (publish === undefined || this.#publishLeft <= 0) return undefined;
    this.#publishLeft--;
    if (publish.status !== undefined) return { kind: "status", status: publish.status };
    if (publish.hang) return { kind: "hang" };
    if (publish.acknowledgeAndLose) return { kind: "acknowledgeAndLose" };
    if (publish.storeAndDropAnswer) return { kind: "storeAndDropAnswer" };
    return undefined;
  }
}
