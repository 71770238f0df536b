import type { AttemptOutcome, Sender } from "@/sandbox/qstash/attempt";
import type { FaultBoard } from "@/sandbox/qstash/faults";
import { canonicalHeaderName } from "@/sandbox/qstash/header-names";
import type { Message } from "@/sandbox/qstash/message";
import type { Signer } from "@/sandbox/qstash/signer";
import type { VirtualClock } from "@/sandbox/qstash/virtual-clock";

const REGION = "EU-CENTRAL-1";

export type Deliverer = {
  deliver(message: Message, retried: number): Promise<AttemptOutcome>;
  /** Cuts every call that is under way. */
  abortAll(): void;
};

/**
 * Delivers a message once: freshly signed, with the documented headers (QStash docs, howto/receiving and howto/multi-region), cut
 * off at the message's own time limit.
 */
export function createDeliverer(clock: VirtualClock, signer: Signer, sender: Sender, faults: FaultBoard): Deliverer {
  const underWay = new Set<AbortController>();

  async function signedHeaders(message: Message, retried: number): Promise<Record<string, string>> {
    const forwarded = Object.entries(message.headers).map(([name, value]) => [canonicalHeaderName(name), value]);
    const { signWithNextKey = false, skewSeconds = 0 } = faults.current.deliver ?? {};
    return {
      "User-Agent": "Upstash-QStash",
      ...Object.fromEntries(forwarded),
      "Upstash-Message-Id": message.messageId,
      "Upstash-Retried": String(retried),
      "Upstash-Caller-Ip": message.callerIp,
      "Upstash-Region": REGION,
      "Upstash-Signature": await signer.sign({
        url: message.destination,
        body: message.body,
        key: signWithNextKey ? "next" : "current",
        skewSeconds,
      }),
    };
  }

  return {
    async deliver(message, retried) {
      const { destination: url, method, body, timeoutMs } = message;
      const controller = new AbortController();
      underWay.add(controller);
      const headers = await signedHeaders(message, retried);
      // Counted from the sending, so that a jump of the clock does not time out the very calls that it brings about.
      const limit = clock.setTimer(clock.now() + timeoutMs, () => {
        controller.abort(new Error(`no answer within ${timeoutMs} ms`));
      });
      try {
        return await sender.send({ url, method, headers, body, signal: controller.signal });
      } finally {
        limit.cancel();
        underWay.delete(controller);
      }
    },
    abortAll() {
      for (const controller of underWay) controller.abort(new Error("the emulator was reset"));
    },
  };
}
