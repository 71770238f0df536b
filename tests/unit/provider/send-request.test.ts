import { getEventListeners } from "node:events";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { sendRequest } from "@/lib/provider/send-request";

const LIMITS = { timeoutMs: 3_600_000, maxBodyBytes: 100 };

/** A body of which the first half arrives; then the run's deadline fires and the rest never comes. */
function sendHalf(status: number, deadline: AbortController) {
  return sendRequest(
    async () => {
      const data = Readable.from(
        (async function* () {
          yield Buffer.from('[{"a":');
          deadline.abort();
          throw new Error("https://x.test/?userSecret=s");
        })(),
      );
      return { status, headers: { "Retry-After": "7" }, data };
    },
    deadline.signal,
    LIMITS,
  );
}

test("the deadline in the middle of a success makes it no answer", async () => {
  expect(await sendHalf(200, new AbortController())).toEqual({ kind: "aborted" });
});

test("the deadline in the middle of a 429 keeps the 429: a cooldown must be set", async () => {
  const sent = await sendHalf(429, new AbortController());
  expect(sent).toMatchObject({
    kind: "answered",
    answer: { status: 429, body: '[{"a":' },
    bodyFault: "body cut off: Error",
  });
  expect(sent.kind === "answered" && sent.answer.header("retry-after")).toBe("7");
});

test("whatever is thrown, only its code or name gets out", async () => {
  const thrown = [
    Object.assign(new Error("https://x.test/?userSecret=s"), { code: "ECONNRESET" }),
    Object.assign(new Error("x"), { code: "https://x.test/?userSecret=s" }),
    new TypeError("https://x.test/?userSecret=s"),
    "https://x.test/?userSecret=s",
  ];
  const reasons = [];
  for (const error of thrown) {
    const sent = await sendRequest(() => Promise.reject(error), new AbortController().signal, LIMITS);
    reasons.push(sent.kind === "unanswered" ? sent.reason : sent.kind);
  }
  expect(reasons).toEqual(["ECONNRESET", "Error", "TypeError", "unknown error"]);
});

test("an answer without a body stream is no whole answer", async () => {
  const send = async () => ({ status: 200, headers: {}, data: undefined });
  const sent = await sendRequest(send, new AbortController().signal, LIMITS);
  expect(sent).toMatchObject({ kind: "answered", bodyFault: "no body" });
});

test("the run's signal is left without listeners", async () => {
  const { signal } = new AbortController();
  const during: number[] = [];
  const send = async () => {
    during.push(getEventListeners(signal, "abort").length);
    return { status: 200, headers: {}, data: Readable.from([]) };
  };
  await sendRequest(send, signal, LIMITS);
  expect([...during, getEventListeners(signal, "abort").length]).toEqual([1, 0]);
});
