/**
 * Checks the environment at start. Under `next start` a fault ends the process with one message each: a throw here would
 * leave it up, answering 500. On Vercel a process cannot refuse to start: every route answers 503, and this names why.
 */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== "nodejs") return;
  const { processService } = await import("@/lib/composition");
  const { createLogger } = await import("@/lib/log");
  const composed = processService();
  if (composed.kind === "ok") {
    for (const warning of composed.warnings) composed.service.logger.warn({}, warning);
    return;
  }
  const logger = createLogger({ secrets: [] });
  for (const fault of composed.faults) logger.error({}, fault);
  if (!process.env.VERCEL) process.exit(1);
}
