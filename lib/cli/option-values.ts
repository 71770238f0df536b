import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { duration, wholeNumber } from "@/lib/env-values";
import { isId } from "@/lib/webhook/event-ids";

/** A reader of one argument or option; a value that it refuses ends the command with exit code 2. */
export function reading<T>(schema: z.ZodType<T>): (given: string) => T {
  return (given) => {
    const parsed = schema.safeParse(given);
    if (parsed.success) return parsed.data;
    throw new InvalidArgumentError(`Expected ${parsed.error.issues[0]?.message}.`);
  };
}

export const readId = reading(z.string().refine(isId, { error: "1 to 128 characters of A-Z, a-z, 0-9, _, . and -" }));
export const readDuration = reading(duration());
export const readLimit = reading(wholeNumber().refine((n) => n <= 500, { error: "a whole number from 1 to 500" }));

/** The job ids of `replay`, which commander hands over one by one. */
const jobId = reading(z.guid({ error: "a job id, as npm run ops -- dead shows it" }));
export function readJobIds(given: string, before: string[] = []): string[] {
  return [...before, jobId(given)];
}
