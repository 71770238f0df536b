import { SETTING_NAMES } from "@/lib/env";

/** What else decides how Next.js or a client library behaves, and must not come from the developer's shell. */
const FOREIGN =
  /^(VERCEL|NEXT_|__NEXT|QSTASH_|UPSTASH_|SUPABASE_|SNAPTRADE_|npm_|NODE_ENV$|NODE_OPTIONS$|PORT$|HOSTNAME$)/;

/**
 * Everything that the service reads: what the sandbox sets, then what the caller gives. Settings that nobody gives are
 * there as empty, which counts as unset: otherwise they would be taken from a `.env.local` of the checkout, real keys
 * included.
 */
export function appSettings(service: Record<string, string>, given: Record<string, string>): Record<string, string> {
  const unset = [...SETTING_NAMES, "QSTASH_DEV", "VERCEL", "VERCEL_ENV", "VERCEL_PROJECT_PRODUCTION_URL"];
  return { ...Object.fromEntries(unset.map((name) => [name, ""])), ...service, ...given };
}

/** The environment of the app's process: the shell's without anything of the service's own, then the settings. */
export function appEnv(mode: "dev" | "start", settings: Record<string, string>): NodeJS.ProcessEnv {
  const shell = Object.entries(process.env).filter(([name]) => !FOREIGN.test(name) && !SETTING_NAMES.includes(name));
  return {
    ...Object.fromEntries(shell),
    NODE_ENV: mode === "dev" ? "development" : "production",
    NEXT_TELEMETRY_DISABLED: "1",
    ...settings,
  };
}
