import { randomBytes } from "node:crypto";
import { SignJWT } from "jose";
import { controlFaults, createFaults, type Fault } from "@/sandbox/faults";
import { type HttpCall, json, listen } from "@/sandbox/listen";
import { createLiteHandler, type LiteHandler } from "@/sandbox/supabase/lite-handler";
import { createRpcFastPath } from "@/sandbox/supabase/rpc-fast-path";

export type SupabaseOptions = {
  /** Absent: a free one. */
  port?: number | undefined;
  /** A database prepared by `installSupabaseBase` and the migrations. */
  databaseUrl: string;
  secretKey?: string | undefined;
  publishableKey?: string | undefined;
  /** At least 32 characters. Absent: random. */
  jwtSecret?: string | undefined;
};

export type Supabase = {
  url: string;
  secretKey: string;
  publishableKey: string;
  /** A JWT of a signed-in user, valid for a day: send it as bearer beside the publishable key. */
  userToken(sub: string): Promise<string>;
  /** Requests so far, those to `/_sim` not counted. */
  requests(): number;
  /** Lets the next requests go wrong. */
  fault(fault: Fault): void;
  clearFaults(): void;
  close(): Promise<void>;
};

/**
 * The part of Supabase that this service uses, on 127.0.0.1 over any Postgres: PostgREST's `/rest/v1`, and the keys.
 * `GET /_sim/state` answers `{requests, byPath}`; `POST /_sim/faults` takes a fault, `DELETE` clears them.
 */
export async function startSupabase(options: SupabaseOptions): Promise<Supabase> {
  const secretKey = options.secretKey ?? "sb_secret_sandbox";
  const publishableKey = options.publishableKey ?? "sb_publishable_sandbox";
  const jwtSecret = options.jwtSecret ?? randomBytes(32).toString("hex");
  const { databaseUrl } = options;
  const rpc = createRpcFastPath(databaseUrl, secretKey);
  const faults = createFaults();
  const byPath = new Map<string, number>();
  const requests = () => [...byPath.values()].reduce((sum, count) => sum + count, 0);
  let lite: Promise<LiteHandler> | undefined;

  const liteAnswer = async (call: HttpCall) => {
    lite ??= createLiteHandler({ databaseUrl, secretKey, publishableKey, jwtSecret });
    return (await lite).answer(call);
  };

  const server = await listen(async (call) => {
    if (call.path === "/_sim/state") return json({ requests: requests(), byPath: Object.fromEntries(byPath) });
    if (call.path.startsWith("/_sim/")) {
      return controlFaults(faults, call) ?? json({ error: `No control ${call.path}` }, 404);
    }
    byPath.set(call.path, (byPath.get(call.path) ?? 0) + 1);
    return faults.play(async () => (await rpc.answer(call)) ?? (await liteAnswer(call)));
  }, options.port);

  return {
    url: server.url,
    secretKey,
    publishableKey,
    userToken: (sub) =>
      new SignJWT({ role: "authenticated" })
        .setProtectedHeader({ alg: "HS256", typ: "JWT" })
        .setSubject(sub)
        .setAudience("authenticated")
        .setIssuedAt()
        .setExpirationTime("1d")
        .sign(new TextEncoder().encode(jwtSecret)),
    requests,
    fault: faults.add,
    clearFaults: faults.clear,
    close: async () => {
      await server.close();
      await Promise.all([rpc.close(), lite?.then((handler) => handler.close())]);
    },
  };
}
