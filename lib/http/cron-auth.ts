import { isSameSecret } from "@/lib/same-secret";

/**
 * Whether a request carries `Authorization: Bearer <CRON_SECRET>`, as Vercel's crons, the uptime monitor and Prometheus
 * send it. An unset or blank secret refuses every request: `Bearer undefined` opens nothing. The scheme's case does not
 * matter (RFC 9110, 11.1). Constant time.
 */
export function isCronRequest(request: Request, cronSecret: string | undefined): boolean {
  if (cronSecret === undefined || cronSecret.trim() === "") return false;
  const [, given] = /^Bearer +(.+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
  return given !== undefined && isSameSecret(given, cronSecret);
}
