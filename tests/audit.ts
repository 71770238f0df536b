/**
 * `npm run audit`: known vulnerabilities of the installed packages, high and critical ones a failure. Where the registry has
 * no audit endpoint it says so and ends well: nothing was found out, and nothing is wrong.
 */
import { spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { z } from "zod";

/** The answers of a registry that does not know the endpoint: not found, not allowed, not implemented. */
const NO_ENDPOINT = [404, 405, 501];

const severities = z.object({ moderate: z.number(), low: z.number(), high: z.number(), critical: z.number() });
const report = z.object({ metadata: z.object({ vulnerabilities: severities }) });
const refusal = z.object({ message: z.string(), statusCode: z.number().optional() });

type Verdict = { exit: 0 | 1; text: string };

/** What the JSON of `npm audit` means. */
export function readAudit(output: string): Verdict {
  const json = jsonIn(output);
  const found = report.safeParse(json);
  if (found.success) {
    const { low, moderate, high, critical } = found.data.metadata.vulnerabilities;
    const text = `${critical} critical, ${high} high, ${moderate} moderate, ${low} low vulnerabilities.`;
    return { exit: high + critical > 0 ? 1 : 0, text };
  }
  const refused = refusal.safeParse(json);
  if (!refused.success) return { exit: 1, text: "npm audit gave no report." };
  const { message, statusCode = 0 } = refused.data;
  if (!NO_ENDPOINT.includes(statusCode)) return { exit: 1, text: `npm audit failed: ${message}` };
  return { exit: 0, text: `Not audited: this registry has no audit endpoint (${message}).` };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function main(): void {
  const audit = spawnSync("npm", ["audit", "--audit-level=high", "--json"], { encoding: "utf8", maxBuffer: 1 << 26 });
  const { exit, text } = readAudit(audit.stdout ?? "");
  console.log(text);
  if (exit === 1) console.log("Run `npm audit` for the packages and their mends.");
  process.exitCode = exit;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
