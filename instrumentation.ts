/** Checks the environment at start (lib/check-start.ts). The import stands in a branch of its own: the edge has no process. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === "nodejs") {
    const { checkStart } = await import("@/lib/check-start");
    checkStart({ isVercel: Boolean(process.env.VERCEL) });
  }
}
