import { LUA_BUDGET } from "@/lib/guards/lua-budget";
import { LUA_ADMIT, LUA_OBSERVE } from "@/lib/guards/lua-scripts";
import { AWAY, type ScriptRunner } from "@/lib/guards/redis-scripts";
import type { Message, Published, Publisher } from "@/lib/jobs/publisher";
import type { LogFields, Logger } from "@/lib/log";
import type { Service } from "@/lib/service";
import { createGuards } from "@/lib/snaptrade-webhook-guards";
import { StoreError } from "@/lib/store/call-function";
import { ENV, GUARD_SETTINGS } from "@/tests/histories/env";
import type { Fiber } from "@/tests/histories/fibers";
import type { World } from "@/tests/histories/world";

const NEVER = new AbortController().signal;

/** The service whose every call of a port is a turn of this fiber; what comes back is shown to the watch. */
export function inTurns(fiber: Fiber, world: World, logger: Logger): Service {
  const { watch, ports, now } = world;
  const scripts: ScriptRunner = {
    run: (script, names, args) =>
      fiber.turn(
        "redis",
        async () => {
          // Redis's own clock counts when a script runs, not when it was asked for.
          const timed = isTimed(script) ? [now(), ...args.slice(1)] : args;
          const reply = await ports.scripts.run(script, names, timed);
          if (script === LUA_OBSERVE) watch.limited(names[3] ?? "", ...lengths(args));
          if (script === LUA_ADMIT && Array.isArray(reply) && reply[0] === "go") watch.admitted(names[3] ?? "");
          return reply;
        },
        () => AWAY,
      ),
  };
  const store = wrapped(ports.store, (name, call) =>
    fiber.turn(
      `postgres ${name}`,
      async () => {
        const answer = await call();
        if (name === "begin" && hasFence(answer)) watch.began(answer.fence);
        watch.look();
        return answer;
      },
      () => {
        throw new StoreError(name, "", "no answer", true);
      },
    ),
  );
  const provider = wrapped(world.upstream.provider(), (_, call) =>
    fiber.turn("snaptrade", call, () => ({ kind: "failed", status: 0, reason: "no answer", limits: {} })),
  );
  const publisher: Publisher = {
    publish: (messages) =>
      fiber.turn(
        "qstash",
        async () => {
          world.queue.publish(messages);
          return published(messages, "published");
        },
        () => published(messages, "failed"),
      ),
    isReachable: async () => true,
    pause: async () => {},
    resume: async () => {},
  };
  return {
    env: ENV,
    logger: logger,
    clock: now,
    guards: createGuards({ settings: GUARD_SETTINGS, scripts, clock: now }),
    store,
    provider,
    publisher,
    newId: () => world.newId(),
    deadline: () => NEVER,
    reach: async () => {},
  };
}

/** The same port, each of its calls handed to `take`. */
function wrapped<P extends object>(port: P, take: (name: string, call: () => Promise<unknown>) => unknown): P {
  return new Proxy(port, {
    get(target, name, receiver) {
      const method: unknown = Reflect.get(target, name, receiver);
      if (typeof method !== "function" || typeof name !== "string") return method;
      return (...args: unknown[]) => take(name, async () => method.apply(target, args));
    },
  });
}

function published(messages: Message[], result: Published): { results: Published[]; reason: string | null } {
  return { results: messages.map(() => result), reason: result === "failed" ? "no answer" : null };
}

const TIMED = new Map<string, boolean>();
/** Whether a script's first argument is the time. Asked once for each: comparing long texts would be half of a history. */
function isTimed(script: string): boolean {
  const known = TIMED.get(script) ?? script.startsWith(LUA_BUDGET);
  TIMED.set(script, known);
  return known;
}

function hasFence(answer: unknown): answer is { fence: number } {
  return typeof answer === "object" && answer !== null && "fence" in answer;
}

/** Hold, client cooldown, account cooldown: as LUA_OBSERVE takes them. */
function lengths(args: (string | number)[]): [number, number, number] {
  return [Number(args[5]), Number(args[6]), Number(args[7])];
}

/** Lines are not looked at, except that an error which is no answer's absence is a fault of ours. */
export function quietLogger(onError: (error: Error) => void): Logger {
  const logger: Logger = {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: ({ error }: LogFields) => {
      if (error instanceof Error && !(error instanceof StoreError)) onError(error);
    },
    child: () => logger,
  };
  return logger;
}
