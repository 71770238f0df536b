import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Where each part listens; undefined: a free port, taken when it starts. */
export type Ports = {
  app: number;
  supabase: number;
  qstash: number;
  redisFront: number;
  snaptrade: number;
  postgres: number | undefined;
  redis: number | undefined;
};

const NAMES: Record<keyof Ports, string> = {
  app: "the app",
  supabase: "the Supabase API",
  qstash: "QStash",
  redisFront: "the Redis front",
  snaptrade: "SnapTrade",
  postgres: "Postgres",
  redis: "Redis",
};

const DEFAULTS: Ports = {
  app: 3000,
  supabase: 54321,
  qstash: 8080,
  redisFront: 8079,
  snaptrade: 8090,
  postgres: undefined,
  redis: undefined,
};

/** Above 1023, which `fetch` refuses to connect to (WHATWG Fetch, "port blocking"). */
const REFUSED_BY_FETCH = new Set([
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697],
  10080,
]);

export function portsFrom(base: number | undefined): Ports {
  if (base === undefined) return DEFAULTS;
  return {
    app: base,
    supabase: base + 1,
    qstash: base + 2,
    redisFront: base + 3,
    snaptrade: base + 4,
    postgres: base + 5,
    redis: base + 6,
  };
}

/** @throws naming the first port that somebody listens on, or that no client would connect to */
export async function assertUsable(ports: Ports): Promise<void> {
  for (const [name, port] of entries(ports)) {
    const advice = "Stop what listens there, or choose other ports by --port-base N.";
    if (REFUSED_BY_FETCH.has(port)) {
      throw new Error(`Port ${port}, for ${NAMES[name]}, is one that fetch refuses: choose another --port-base N.`);
    }
    if (!(await isFree(port))) throw new Error(`Port ${port}, for ${NAMES[name]}, is taken. ${advice}`);
  }
}

/** Bases below 32768, from where on the system hands out ports of its own. */
const FIRST_BASE = 10_100;
const LAST_BASE = 32_700;

/** A multiple of ten from which ten ports are free now. Random, so that two that look at once do not meet. */
export async function findFreeBase(): Promise<number> {
  for (let tries = 0; tries < 200; tries += 1) {
    const base = randomInt(FIRST_BASE / 10, LAST_BASE / 10) * 10;
    const ten = Array.from({ length: 10 }, (_, i) => base + i);
    if (ten.some((port) => REFUSED_BY_FETCH.has(port))) continue;
    if ((await Promise.all(ten.map(isFree))).every(Boolean)) return base;
  }
  throw new Error(`No ten free ports in a row were found between ${FIRST_BASE} and ${LAST_BASE}.`);
}

function entries(ports: Ports): [keyof Ports, number][] {
  const names: (keyof Ports)[] = ["app", "supabase", "qstash", "redisFront", "snaptrade", "postgres", "redis"];
  return names.flatMap((name) => {
    const port = ports[name];
    return port === undefined ? [] : [[name, port]];
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
