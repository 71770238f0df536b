import { answer, type Route } from "@/sandbox/qstash/route";
import type { Signer } from "@/sandbox/qstash/signer";

/** The signing keys, and their rotation. */
export function keyRoutes(signer: Signer): Route[] {
  return [
    { method: "GET", pattern: /^\/v2\/keys$/, handle: () => answer(200, signer.keys) },
    { method: "POST", pattern: /^\/v2\/keys\/rotate$/, handle: () => answer(200, signer.rotate()) },
  ];
}
