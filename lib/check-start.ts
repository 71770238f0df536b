import { processService } from "@/lib/composition";
import { createLogger } from "@/lib/log";

/**
 * Names every fault of the environment, one message each, and ends the process: a throw here would leave `next start` up,
 * answering 500. On Vercel a process cannot refuse to start: every route answers 503 there, and these lines say why.
 */
export function checkStart({ isVercel }: { isVercel: boolean }): void {
  const composed = processService();
  if (composed.kind === "ok") {
    for (const warning of composed.warnings) composed.service.logger.warn({}, warning);
    return;
  }
  const logger = createLogger({ secrets: [] });
  for (const fault of composed.faults) logger.error({}, fault);
  if (!isVercel) process.exit(1);
}
